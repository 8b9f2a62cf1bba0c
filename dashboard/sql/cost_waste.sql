-- one row per kind of waste and per agent (`dimension`), of the tasks in scope, the dearest first
-- inputs: scope, waste
-- parameters: those of scope
WITH scope AS NOT MATERIALIZED ({scope}),
wasted AS (
    SELECT w.kind, s.agent, w.task_id, w.calls, w.cost_usd
    FROM waste w
    JOIN scope s USING (task_id)
    WHERE s.excluded_reason IS NULL
)
SELECT
    CASE WHEN grouping(kind) = 0 THEN 'kind' ELSE 'agent' END AS dimension,
    CASE WHEN grouping(kind) = 0 THEN kind ELSE agent END AS name,
    count(DISTINCT task_id) AS tasks,
    sum(calls)::BIGINT AS calls,
    sum(cost_usd) AS cost_usd,
    sum(cost_usd) / nullif((SELECT sum(cost_usd) FROM scope WHERE excluded_reason IS NULL), 0) AS share,
    count(*) FILTER (cost_usd IS NULL) AS unpriced,
    arg_max(task_id, cost_usd) AS dearest_task
FROM wasted
GROUP BY GROUPING SETS ((kind), (agent))
ORDER BY dimension DESC, cost_usd DESC NULLS LAST, name
