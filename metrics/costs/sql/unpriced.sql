-- Grain: one row per service, provider and model with usage that has no price.
-- Inputs: unpriced_usage.
SELECT * FROM unpriced_usage ORDER BY input_tokens DESC NULLS LAST, model, provider, service
