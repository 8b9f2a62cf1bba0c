-- one row: cost, tokens and times of the tasks in scope
-- inputs: scope
-- parameters: those of scope
WITH scope AS NOT MATERIALIZED ({scope})
SELECT
    count(*) AS tasks,
    count(cost_usd) AS priced,
    count(*) FILTER (model_calls > 0 AND NOT coalesce(cost_complete, false)) AS unpriced,
    sum(cost_usd) AS cost_usd,
    sum(cost_usd) / nullif(count(*) FILTER (outcome = 'completed'), 0) AS cost_per_completed,
    sum(cost_usd) FILTER (outcome IN ('failed', 'lost', 'dead_letter', 'cancelled_system')) AS cost_of_failed,
    -- All quantiles of a measure from one sort.
    quantile_cont(cost_usd, [0.5, 0.95]) AS cost_q,
    cost_q[1] AS cost_median,
    cost_q[2] AS cost_p95,
    sum(input_tokens) AS input_tokens,
    sum(output_tokens) AS output_tokens,
    quantile_cont(active_s, [0.5, 0.95]) AS active_q,
    active_q[1] AS active_median_s,
    active_q[2] AS active_p95_s,
    quantile_cont(wall_s, 0.95) AS wall_p95_s
FROM scope
