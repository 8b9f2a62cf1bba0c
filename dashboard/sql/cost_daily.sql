-- one row per day (UTC, by start) and agent, and per day over all agents (agent NULL, whole true), of the tasks in scope
-- inputs: scope
-- parameters: those of scope; by (`cost`, `active`, `wall` or `tokens`)
WITH scope AS NOT MATERIALIZED ({scope}),
days AS (
    SELECT
        date_trunc('day', started_at) AS day, agent, cost_usd,
        CASE $by WHEN 'cost' THEN cost_usd WHEN 'active' THEN active_s WHEN 'wall' THEN wall_s
            ELSE coalesce(input_tokens + output_tokens, input_tokens, output_tokens) END AS measured
    FROM scope
    WHERE started_at IS NOT NULL
),
of_agents AS (
    SELECT day, agent, count(*) AS tasks, sum(cost_usd) AS cost_usd
    FROM days
    GROUP BY ALL
),
of_all AS (
    -- Both quantiles from one sort.
    SELECT day, count(*) AS tasks, sum(cost_usd) AS cost_usd, quantile_cont(measured, [0.5, 0.95]) AS q
    FROM days
    GROUP BY day
)
SELECT day, NULL AS agent, true AS whole, tasks, cost_usd, q[1] AS median, q[2] AS p95 FROM of_all
UNION ALL
SELECT day, agent, false, tasks, cost_usd, NULL, NULL FROM of_agents
ORDER BY day, whole DESC, agent
