-- One row per (provider, model) that was never asked a price for. Inputs: new_steps, core.model_prices.
SELECT DISTINCT coalesce(provider, '') AS provider, model
FROM new_steps
WHERE is_leaf_model AND model IS NOT NULL AND input_tokens IS NOT NULL
EXCEPT
SELECT provider, model FROM core.model_prices
ORDER BY ALL
