-- one row per newest unprotected duplicate of the tasks in scope, at least one row; totals of all repeats in every row
-- inputs: attempts
-- parameters: those of scope
-- The newest are found by narrow columns first: reading the arguments of all repeats costs ten times as much.
WITH repeats AS (
    SELECT started_at, attempt_id, duplicate
    FROM ({scope of attempts})
    WHERE duplicate IS NOT NULL
),
totals AS (
    SELECT
        count(*) FILTER (duplicate = 'unprotected') AS unprotected,
        count(*) FILTER (duplicate = 'protected') AS protected,
        count(*) FILTER (duplicate = 'no_op') AS no_op
    FROM repeats
),
newest AS (
    SELECT attempt_id, started_at
    FROM repeats
    WHERE duplicate = 'unprotected'
    ORDER BY started_at DESC, attempt_id
    LIMIT 20
),
told AS (
    SELECT a.agent, a.started_at, a.attempt_id, a.task_id, a.tool, a.cause, a.effect, a.compensated, a.rule,
        a.arguments
    FROM attempts a
    JOIN newest n USING (attempt_id)
    -- Numbers are compared where ids are texts, and row groups of other times are skipped.
    WHERE a.started_at BETWEEN (SELECT min(started_at) FROM newest) AND (SELECT max(started_at) FROM newest)
      AND a.duplicate = 'unprotected'
)
SELECT t.*, o.*
FROM totals t
LEFT JOIN told o ON true
ORDER BY o.started_at DESC, o.attempt_id
