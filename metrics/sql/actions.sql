-- Grain: one row per action: one intended change to the outside world.
-- Inputs: attempts, uncertain.
WITH timed AS (
  SELECT
    *,
    CASE WHEN seen_by = 'span' THEN (epoch_us(ended_at) - epoch_us(started_at)) / 1e6 END AS took_s,
    (epoch_us(started_at) - lag(epoch_us(coalesce(ended_at, started_at))) OVER (PARTITION BY action_id ORDER BY start_ns, attempt_id)) / 1e6 AS wait_s
  FROM attempts
  WHERE action_id IS NOT NULL
),
grouped AS (
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
    min(start_ns) AS first_ns,
    max(coalesce(epoch_us(ended_at) * 1000, start_ns)) AS last_ns,
    make_timestamp(min(start_ns) // 1000) AS started_at,
    spans_of(list(span_id ORDER BY start_ns, span_id)) AS evidence,
    -- all its attempts, over runs and traces, as one line of time
    string_agg(
      CASE
        WHEN wait_s IS NULL THEN ''
        WHEN wait_s < 0 THEN ' | meanwhile: '
        WHEN wait_s < 120 THEN printf(' | %.1f s later: ', wait_s)
        WHEN wait_s < 7200 THEN printf(' | %.0f min later: ', wait_s / 60)
        ELSE printf(' | %.1f h later: ', wait_s / 3600)
      END
      || outcome || CASE WHEN took_s IS NOT NULL THEN printf(' in %.1f s', took_s) WHEN ended_at IS NULL THEN ', never ended' ELSE '' END
      || CASE WHEN duplicate IS NULL THEN '' ELSE ' (' || replace(duplicate, '_', '-') || ' repeat, ' || replace(cause, '_', ' ') || ')' END
      || CASE WHEN compensated THEN ', undone' ELSE '' END,
      '' ORDER BY start_ns, attempt_id) AS story
  FROM timed
  GROUP BY action_id
)
SELECT
  g.*,
  -- nothing about it is still open: every attempt that ended unknown has been settled since
  u.attempts IS NULL AS settled,
  coalesce(u.span_ids, []) AS open_span_ids,
  u.since AS open_since
FROM grouped g
LEFT JOIN (
  SELECT a.action_id, count(*) AS attempts, list(u.span_id ORDER BY u.last_ns, u.span_id) AS span_ids, make_timestamp(min(u.last_ns) // 1000) AS since
  FROM uncertain u
  JOIN attempts a USING (attempt_id)
  WHERE u.settled_at IS NULL
  GROUP BY a.action_id
) u USING (action_id)
