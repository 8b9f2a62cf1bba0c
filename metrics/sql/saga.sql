-- Grain: one row per failed task that left effects: were they all undone?
-- Inputs: tasks, attempts, compensations.
-- What undoes something else is no effect of its own, and what a key or an idempotent tool swallowed is none either.
WITH effects AS (
  SELECT a.task_id, a.attempt_id, a.tool, a.span_id, a.compensated
  FROM attempts a
  JOIN tasks t USING (task_id)
  WHERE a.action_id IS NOT NULL AND a.outcome = 'ok' AND coalesce(a.duplicate, 'unprotected') = 'unprotected'
    AND t.outcome IN ('failed', 'dead_letter', 'cancelled_system')
    AND NOT EXISTS (SELECT 1 FROM compensations c WHERE c.by_attempt = a.attempt_id)
)
SELECT
  task_id,
  count(*) AS effects,
  count(*) FILTER (WHERE compensated) AS undone,
  string_agg(DISTINCT tool, ', ' ORDER BY tool) FILTER (WHERE NOT compensated) AS left_by,
  list(span_id ORDER BY span_id) FILTER (WHERE NOT compensated) AS evidence
FROM effects
GROUP BY task_id
