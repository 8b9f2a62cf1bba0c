-- Grain: one row per step of a task whose tokens count, with the price that was used.
-- Inputs: steps, model_prices.
-- Parameters: id (task id).
SELECT
  s.span_id, s.started_at, s.agent, s.service, s.provider, s.model, s.counts_as, s.error_class,
  greatest(s.input_tokens - coalesce(s.cache_read_tokens, 0) - coalesce(s.cache_write_tokens, 0), 0) AS fresh_tokens,
  s.cache_read_tokens, s.cache_write_tokens, s.output_tokens, s.input_tokens,
  s.input_cost_usd, s.cache_read_cost_usd, s.cache_write_cost_usd, s.output_cost_usd, s.request_cost_usd,
  s.computed_cost_usd, s.stated_cost_usd, s.cost_usd,
  CASE
    WHEN s.computed_cost_usd IS NOT NULL THEN p.source
    WHEN s.cost_usd IS NOT NULL THEN 'stated by the sender'
    WHEN s.error_class IS NOT NULL AND s.input_tokens IS NULL AND s.output_tokens IS NULL THEN 'failed before it used anything'
    WHEN s.input_tokens IS NULL THEN 'no tokens stated'
    WHEN s.model IS NULL THEN 'no model stated'
    ELSE 'no price'
  END AS source
FROM steps s
LEFT JOIN model_prices p
  ON p.model = s.model AND p.provider = coalesce(s.provider, '') AND p.input IS NOT NULL
  AND (p.service = coalesce(s.service, '') OR (p.service IS NULL AND NOT EXISTS (
    SELECT 1 FROM model_prices o WHERE o.model = p.model AND o.provider = p.provider AND o.service = coalesce(s.service, ''))))
  AND (p.valid_from IS NULL OR s.started_at >= p.valid_from) AND (p.valid_to IS NULL OR s.started_at < p.valid_to)
WHERE s.task_id = $id AND s.counts_as IS NOT NULL
ORDER BY s.started_at, s.span_id
