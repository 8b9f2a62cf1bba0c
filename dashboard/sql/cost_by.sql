-- one row per agent and task type, and per agent and version (`dimension`), of the tasks in scope, the dearest first
-- inputs: scope
-- parameters: those of scope
WITH scope AS NOT MATERIALIZED ({scope}),
tasks_of AS (
    SELECT agent, task_type, app_version, outcome, cost_usd, active_s, wall_s, input_tokens, output_tokens, started_at
    FROM scope
)
SELECT
    CASE WHEN grouping(task_type) = 0 THEN 'type' ELSE 'version' END AS dimension,
    agent,
    CASE WHEN grouping(task_type) = 0 THEN task_type ELSE app_version END AS name,
    count(*) AS tasks,
    sum(cost_usd) AS cost_usd,
    sum(cost_usd) / nullif(count(*) FILTER (outcome = 'completed'), 0) AS cost_per_completed,
    -- Both quantiles from one sort.
    quantile_cont(cost_usd, [0.5, 0.95]) AS cost_q,
    quantile_cont(active_s, [0.5, 0.95]) AS active_q,
    cost_q[1] AS cost_median,
    cost_q[2] AS cost_p95,
    active_q[1] AS active_median_s,
    active_q[2] AS active_p95_s,
    quantile_cont(wall_s, 0.95) AS wall_p95_s,
    (sum(input_tokens) / count(*))::BIGINT AS input_tokens,
    (sum(output_tokens) / count(*))::BIGINT AS output_tokens,
    min(started_at) AS first_seen
FROM tasks_of
GROUP BY GROUPING SETS ((agent, task_type), (agent, app_version))
ORDER BY
    dimension,
    agent,
    CASE WHEN grouping(task_type) = 0 THEN -sum(cost_usd) ELSE -epoch(min(started_at)) END NULLS LAST,
    name
