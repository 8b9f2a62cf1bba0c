-- Grain: one row per action: one intended change to the outside world.
-- Inputs: attempts.
WITH grouped AS (
  SELECT
    action_id,
    any_value(task_id) AS task_id,
    any_value(tool) AS tool,
    arg_min(arguments, (start_ns, attempt_id)) AS arguments,
    count(*) AS attempts,
    count(*) FILTER (WHERE duplicate = 'unprotected') AS duplicates_unprotected,
    count(*) FILTER (WHERE duplicate = 'protected') AS duplicates_protected,
    count(*) FILTER (WHERE duplicate = 'no_op') AS no_op_repeats,
    arg_min(cause, (start_ns, attempt_id)) FILTER (WHERE cause IS NOT NULL) AS cause,
    CASE WHEN bool_or(effect = 'proven') THEN 'proven' WHEN bool_or(effect = 'possible') THEN 'possible' WHEN bool_or(effect = 'none') THEN 'none' END AS effect,
    bool_or(compensated) AS compensated,
    arg_max(outcome, (start_ns, attempt_id)) AS last_outcome,
    arg_max(leaves, (start_ns, attempt_id)) AS leaves,
    max(start_ns) AS last_ns,
    make_timestamp(min(start_ns) // 1000) AS started_at,
    list(span_id ORDER BY start_ns, span_id) AS evidence
  FROM attempts
  WHERE action_id IS NOT NULL
  GROUP BY action_id
)
SELECT
  g.* EXCLUDE (leaves, last_ns),
  -- settled by a later attempt that ended, or by a read that looked at the same thing afterwards
  g.last_outcome <> 'unknown' OR EXISTS (
    SELECT 1 FROM attempts r
    WHERE r.task_id = g.task_id AND r.effect_class = 'read' AND r.disposition = 'executed' AND r.outcome = 'ok'
      AND r.start_ns > g.last_ns AND list_has_any(r.leaves, g.leaves)) AS settled
FROM grouped g
