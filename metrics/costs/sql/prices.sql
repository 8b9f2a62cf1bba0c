-- Grain: one row per model price and the time it holds.
-- Inputs: model_prices.
SELECT provider, model, service, valid_from, valid_to, input, output, cache_read, cache_write, tiers, source
FROM model_prices
WHERE source <> 'unpriced'
ORDER BY model, provider, service NULLS FIRST, valid_from NULLS FIRST
