-- Grain: one row per task, service, provider and model: what its model calls used and cost.
-- Inputs: usage, task_facts.
-- Sums are of decimals: a sum of floats depends on its order, and equal passes must give equal bytes.
WITH calls AS (
  SELECT
    *,
    -- failed before it used anything: nothing to price
    status = 'error' AND cost_usd IS NULL AND coalesce(input_tokens, output_tokens) IS NULL AS was_free
  FROM usage
),
summed AS (
  SELECT
    task_id, service, provider, model,
    count(*) FILTER (WHERE NOT was_free) AS calls,
    sum(greatest(input_tokens - coalesce(cache_read_tokens, 0) - coalesce(cache_write_tokens, 0), 0))::BIGINT AS fresh_tokens,
    sum(cache_read_tokens)::BIGINT AS cache_read_tokens,
    sum(cache_write_tokens)::BIGINT AS cache_write_tokens,
    sum(output_tokens)::BIGINT AS output_tokens,
    sum(reasoning_tokens)::BIGINT AS reasoning_tokens,
    sum(input_cost_usd::DECIMAL(38, 12))::DOUBLE AS input_cost_usd,
    sum(cache_read_cost_usd::DECIMAL(38, 12))::DOUBLE AS cache_read_cost_usd,
    sum(cache_write_cost_usd::DECIMAL(38, 12))::DOUBLE AS cache_write_cost_usd,
    sum(output_cost_usd::DECIMAL(38, 12))::DOUBLE AS output_cost_usd,
    sum(request_cost_usd::DECIMAL(38, 12))::DOUBLE AS request_cost_usd,
    sum(cost_usd::DECIMAL(38, 12))::DOUBLE AS cost_usd,
    -- what nobody could price
    count(*) FILTER (WHERE cost_usd IS NULL AND NOT was_free) AS unpriced_calls,
    (sum(input_tokens) FILTER (WHERE cost_usd IS NULL))::BIGINT AS unpriced_input_tokens,
    (sum(output_tokens) FILTER (WHERE cost_usd IS NULL))::BIGINT AS unpriced_output_tokens,
    -- what the emitter states beside what the price list says, over the calls that have both
    count(*) FILTER (WHERE stated_cost_usd IS NOT NULL AND computed_cost_usd IS NOT NULL) AS compared_calls,
    (sum(computed_cost_usd::DECIMAL(38, 12)) FILTER (WHERE stated_cost_usd IS NOT NULL))::DOUBLE AS compared_computed_usd,
    (sum(stated_cost_usd::DECIMAL(38, 12)) FILTER (WHERE computed_cost_usd IS NOT NULL))::DOUBLE AS compared_stated_usd,
    count(*) FILTER (WHERE stated_cost_usd IS NOT NULL AND computed_cost_usd IS NULL) AS stated_only_calls
  FROM calls
  GROUP BY task_id, service, provider, model
)
-- `service` is of the calls: the task they are part of may have begun in another
SELECT
  s.*, f.agent, f.task_type, f.service AS task_service, f.environment, f.app_version, f.started_at AS task_started_at
FROM summed s
LEFT JOIN task_facts f USING (task_id)
