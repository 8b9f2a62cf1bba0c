-- one row per repeat of the tasks in scope, newest first; `matching` counts them all
-- inputs: scope, attempts
-- parameters: those of scope; kinds (JSON array or NULL), cause, tool, agent (or NULL), suspected (boolean: those
--             a trace cannot prove, instead)
-- The newest are found by narrow columns first: reading the arguments of all repeats costs ten times as much.
WITH scope AS NOT MATERIALIZED ({scope}),
newest AS (
    SELECT a.attempt_id, a.started_at, s.agent, count(*) OVER () AS matching
    FROM attempts a
    JOIN scope s USING (task_id)
    WHERE CASE WHEN $suspected::BOOLEAN THEN a.suspected AND a.duplicate IS NULL ELSE a.duplicate IS NOT NULL END
      AND ($kinds::VARCHAR IS NULL OR list_contains(from_json($kinds::VARCHAR, '["VARCHAR"]'), a.duplicate))
      AND ($cause::VARCHAR IS NULL OR a.cause = $cause)
      AND ($tool::VARCHAR IS NULL OR a.tool = $tool)
      AND ($agent::VARCHAR IS NULL OR s.agent = $agent)
    ORDER BY a.started_at DESC, a.attempt_id
    LIMIT 100
)
SELECT
    a.started_at, a.task_id, n.agent, a.tool, a.duplicate, a.cause, a.effect, a.compensated, a.rule,
    a.idempotency_key, a.arguments, n.matching
FROM attempts a
JOIN newest n USING (attempt_id)
-- Numbers are compared where ids are texts, and row groups of other times are skipped.
WHERE a.started_at BETWEEN (SELECT min(started_at) FROM newest) AND (SELECT max(started_at) FROM newest)
ORDER BY a.started_at DESC, a.attempt_id
