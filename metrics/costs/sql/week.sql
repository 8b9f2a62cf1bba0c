-- Grain: one row: what unreliability cost in the last seven days; no row when nothing was decided in them.
-- Inputs: waste_weekly.
SELECT * FROM waste_weekly WHERE weeks_ago = 0
