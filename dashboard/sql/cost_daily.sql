-- one row per day (UTC, by start) and agent, and per day over all agents (agent NULL, whole true), of the tasks in scope
-- inputs: scope
-- parameters: those of scope
WITH scope AS NOT MATERIALIZED ({scope}),
days AS (
    SELECT date_trunc('day', started_at) AS day, agent, cost_usd, active_s, wall_s
    FROM scope
    WHERE started_at IS NOT NULL
)
SELECT
    day,
    agent,
    grouping(agent) = 1 AS whole,
    count(*) AS tasks,
    sum(cost_usd) AS cost_usd,
    median(cost_usd) AS cost_median,
    quantile_cont(cost_usd, 0.95) AS cost_p95,
    median(active_s) AS active_median_s,
    quantile_cont(active_s, 0.95) AS active_p95_s,
    median(wall_s) AS wall_median_s,
    quantile_cont(wall_s, 0.95) AS wall_p95_s
FROM days
GROUP BY GROUPING SETS ((day, agent), (day))
ORDER BY day, whole DESC, agent
