-- one row per bucket of the values of one measure, five buckets to a factor of ten, of the tasks in scope
-- inputs: scope
-- parameters: those of scope; by (`cost`, `active` or `wall`)
WITH scope AS NOT MATERIALIZED ({scope}),
measured AS (
    SELECT CASE $by WHEN 'cost' THEN cost_usd WHEN 'active' THEN active_s ELSE wall_s END AS value
    FROM scope
)
SELECT
    floor(log10(value) * 5)::INTEGER AS bucket,
    pow(10, bucket / 5) AS low,
    pow(10, (bucket + 1) / 5) AS high,
    count(*) AS tasks
FROM measured
WHERE value > 0
GROUP BY bucket
ORDER BY bucket
