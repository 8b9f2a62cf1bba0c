-- One row per (provider, model, service) that was never asked a price for; the service only where prices differ by it.
-- Inputs: metered, core.model_prices; variable by_service.
SELECT DISTINCT coalesce(provider, '') AS provider, model, CASE WHEN getvariable('by_service') THEN coalesce(service, '') END AS service
FROM metered
WHERE model IS NOT NULL AND input_tokens IS NOT NULL
EXCEPT
SELECT provider, model, service FROM core.model_prices
ORDER BY ALL
