-- one row per unprotected duplicate of the tasks in scope, newest first; totals in every row
-- inputs: scope, attempts
-- parameters: those of scope
WITH scope AS NOT MATERIALIZED ({scope}),
repeats AS (
    SELECT a.started_at, a.attempt_id, a.task_id, s.agent, a.tool, a.cause, a.effect, a.compensated, a.arguments,
           a.duplicate
    FROM attempts a
    JOIN scope s USING (task_id)
    WHERE a.duplicate IS NOT NULL
)
SELECT
    *,
    count(*) FILTER (duplicate = 'unprotected') OVER () AS unprotected,
    count(*) FILTER (duplicate = 'protected') OVER () AS protected,
    count(*) FILTER (duplicate = 'no_op') OVER () AS no_op
FROM repeats
ORDER BY (duplicate = 'unprotected') DESC, started_at DESC, attempt_id
LIMIT 20
