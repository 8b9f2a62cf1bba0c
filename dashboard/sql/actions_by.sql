-- one row per cause, per tool and per agent (`dimension`) with repeats of the tasks in scope, most unprotected first
-- inputs: scope, attempts
-- parameters: those of scope
WITH scope AS NOT MATERIALIZED ({scope}),
repeats AS (
    SELECT a.cause, a.tool, s.agent, a.duplicate, a.effect, a.compensated, a.task_id
    FROM attempts a
    JOIN scope s USING (task_id)
    WHERE a.duplicate IS NOT NULL
)
SELECT
    CASE WHEN grouping(cause) = 0 THEN 'cause' WHEN grouping(tool) = 0 THEN 'tool' ELSE 'agent' END AS dimension,
    CASE WHEN grouping(cause) = 0 THEN cause WHEN grouping(tool) = 0 THEN tool ELSE agent END AS name,
    count(*) AS repeats,
    count(*) FILTER (duplicate = 'unprotected') AS unprotected,
    count(*) FILTER (duplicate = 'unprotected' AND effect = 'proven') AS proven,
    count(*) FILTER (duplicate = 'unprotected' AND compensated) AS undone,
    count(*) FILTER (duplicate = 'protected') AS protected,
    count(*) FILTER (duplicate = 'no_op') AS no_op,
    count(DISTINCT task_id) AS tasks
FROM repeats
GROUP BY GROUPING SETS ((cause), (tool), (agent))
ORDER BY dimension, unprotected DESC, repeats DESC, name
