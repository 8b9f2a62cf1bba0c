-- one row per kind of waste and per agent (`dimension`), of the tasks in scope, the dearest first
-- inputs: scope, waste
-- parameters: those of scope
WITH spent AS (
    SELECT sum(cost_usd) AS cost_usd FROM ({scope}) WHERE excluded_reason IS NULL
),
wasted AS (
    SELECT kind, agent, task_id, calls, cost_usd
    FROM ({scope of waste})
    WHERE excluded_reason IS NULL
)
SELECT
    CASE WHEN grouping(kind) = 0 THEN 'kind' ELSE 'agent' END AS dimension,
    CASE WHEN grouping(kind) = 0 THEN kind ELSE agent END AS name,
    count(DISTINCT task_id) AS tasks,
    sum(calls)::BIGINT AS calls,
    sum(cost_usd) AS cost_usd,
    sum(cost_usd) / nullif((SELECT cost_usd FROM spent), 0) AS share,
    count(*) FILTER (cost_usd IS NULL) AS unpriced,
    arg_max(task_id, cost_usd) AS dearest_task
FROM wasted
GROUP BY GROUPING SETS ((kind), (agent))
ORDER BY dimension DESC, cost_usd DESC NULLS LAST, name
