-- one row per cause, tool, agent and day (`dimension`) with repeats of the tasks in scope, most unprotected first
-- inputs: attempts
-- parameters: those of scope
WITH repeats AS (
    SELECT cause, tool, agent, date_trunc('day', started_at) AS day, duplicate
    FROM ({scope of attempts})
    WHERE duplicate IS NOT NULL
)
SELECT
    CASE
        WHEN grouping(cause) = 0 THEN 'cause'
        WHEN grouping(tool) = 0 THEN 'tool'
        WHEN grouping(agent) = 0 THEN 'agent'
        ELSE 'day'
    END AS dimension,
    CASE WHEN grouping(cause) = 0 THEN cause WHEN grouping(tool) = 0 THEN tool WHEN grouping(agent) = 0 THEN agent END
        AS name,
    day,
    count(*) AS repeats,
    count(*) FILTER (duplicate = 'unprotected') AS unprotected,
    count(*) FILTER (duplicate = 'protected') AS protected,
    count(*) FILTER (duplicate = 'no_op') AS no_op
FROM repeats
GROUP BY GROUPING SETS ((cause), (tool), (agent), (day))
ORDER BY dimension, day, unprotected DESC, repeats DESC, name
