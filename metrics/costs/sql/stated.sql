-- Grain: one row per service, provider and model whose calls also state their cost: the two sums over the same calls.
-- Inputs: task_costs.
SELECT
  service, provider, model,
  sum(compared_calls)::BIGINT AS calls,
  sum(compared_computed_usd::DECIMAL(38, 12))::DOUBLE AS computed_usd,
  sum(compared_stated_usd::DECIMAL(38, 12))::DOUBLE AS stated_usd,
  sum(compared_stated_usd::DECIMAL(38, 12))::DOUBLE - sum(compared_computed_usd::DECIMAL(38, 12))::DOUBLE AS difference_usd,
  sum(stated_only_calls)::BIGINT AS stated_only_calls
FROM task_costs
GROUP BY ALL
HAVING sum(compared_calls) + sum(stated_only_calls) > 0
ORDER BY model, provider, service
