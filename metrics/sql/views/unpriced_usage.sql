-- Grain: one row per service, provider and model with usage that has no price.
-- Inputs: core.task_costs, core.tasks.
-- Tokens without a price are shown as tokens: their cost is unknown, never 0.
SELECT
  c.service, c.provider, c.model,
  sum(c.unpriced_calls)::BIGINT AS calls,
  count(DISTINCT c.task_id) AS tasks,
  sum(c.unpriced_input_tokens)::BIGINT AS input_tokens,
  sum(c.unpriced_output_tokens)::BIGINT AS output_tokens,
  min(t.started_at) AS first_seen,
  max(t.started_at) AS last_seen
FROM core.task_costs c
JOIN core.tasks t USING (task_id)
WHERE c.unpriced_calls > 0
GROUP BY c.service, c.provider, c.model
