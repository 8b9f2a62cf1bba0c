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
    -- Both quantiles from one sort.
    quantile_cont(cost_usd, [0.5, 0.95]) AS cost_q,
    quantile_cont(active_s, [0.5, 0.95]) AS active_q,
    quantile_cont(wall_s, [0.5, 0.95]) AS wall_q,
    cost_q[1] AS cost_median,
    cost_q[2] AS cost_p95,
    active_q[1] AS active_median_s,
    active_q[2] AS active_p95_s,
    wall_q[1] AS wall_median_s,
    wall_q[2] AS wall_p95_s
FROM days
GROUP BY GROUPING SETS ((day, agent), (day))
ORDER BY day, whole DESC, agent
