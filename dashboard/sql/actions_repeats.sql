-- one row per repeat of the tasks in scope, newest first; `matching` counts them all
-- inputs: attempts
-- parameters: those of scope; kinds (JSON array or NULL), cause, tool, agent (or NULL), suspected (boolean: those
--             a trace cannot prove, instead), only (`proven` to take effect twice, `undone` later, or NULL)
-- The newest are found by narrow columns first: reading the arguments of all repeats costs ten times as much.
WITH newest AS (
    SELECT attempt_id, started_at, count(*) OVER () AS matching
    FROM ({scope of attempts})
    WHERE CASE WHEN $suspected::BOOLEAN THEN suspected AND duplicate IS NULL ELSE duplicate IS NOT NULL END
      AND ($kinds::VARCHAR IS NULL OR list_contains(from_json($kinds::VARCHAR, '["VARCHAR"]'), duplicate))
      AND CASE $only::VARCHAR WHEN 'proven' THEN effect = 'proven' WHEN 'undone' THEN compensated ELSE true END
      AND ($cause::VARCHAR IS NULL OR cause = $cause)
      AND ($tool::VARCHAR IS NULL OR tool = $tool)
      AND ($agent::VARCHAR IS NULL OR agent = $agent)
    ORDER BY started_at DESC, attempt_id
    LIMIT 100
)
SELECT
    a.started_at, a.task_id, a.agent, a.tool, a.duplicate, a.cause, a.effect, a.compensated, a.rule,
    a.idempotency_key, a.arguments, n.matching
FROM attempts a
JOIN newest n USING (attempt_id)
-- Numbers are compared where ids are texts, and row groups of other times are skipped.
WHERE a.started_at BETWEEN (SELECT min(started_at) FROM newest) AND (SELECT max(started_at) FROM newest)
ORDER BY a.started_at DESC, a.attempt_id
