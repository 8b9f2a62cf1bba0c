-- The prices of the models at hand. Inputs: new_steps, core.model_prices.
CREATE OR REPLACE TEMP TABLE model_prices AS
SELECT p.*
FROM core.model_prices p
SEMI JOIN new_steps s ON s.is_leaf_model AND coalesce(s.provider, '') = p.provider AND s.model = p.model;
