-- The prices of the models at hand: by service where prices differ by it, else those of every service.
-- Inputs: metered, core.model_prices; variable by_service.
CREATE OR REPLACE TEMP TABLE model_prices AS
SELECT p.*
FROM core.model_prices p
SEMI JOIN metered s ON coalesce(s.provider, '') = p.provider AND s.model = p.model
WHERE (p.service IS NOT NULL) = getvariable('by_service');
