-- one row per provider and model of the tasks in scope, the dearest first
-- inputs: task_costs
-- parameters: those of scope
SELECT
    c.provider,
    c.model,
    sum(c.calls)::BIGINT AS calls,
    sum(c.fresh_tokens)::BIGINT AS fresh_tokens,
    sum(c.cache_read_tokens)::BIGINT AS cache_read_tokens,
    sum(c.cache_write_tokens)::BIGINT AS cache_write_tokens,
    sum(c.output_tokens)::BIGINT AS output_tokens,
    sum(c.cost_usd) AS cost_usd,
    sum(c.unpriced_calls)::BIGINT AS unpriced_calls,
    -- Of all input: what was written to the cache was read from nowhere.
    sum(c.cache_read_tokens) / nullif(
        coalesce(sum(c.fresh_tokens), 0) + sum(c.cache_read_tokens) + coalesce(sum(c.cache_write_tokens), 0), 0
    ) AS cached_share
-- Filters are of the task: what its calls were made by may be another service.
FROM ({scope of (SELECT * REPLACE (task_service AS service) FROM task_costs)}) c
GROUP BY c.provider, c.model
ORDER BY cost_usd DESC NULLS LAST, calls DESC, c.model
