-- one row per bucket of the values of one measure, five buckets to a factor of ten, of the tasks in scope
-- inputs: scope
-- parameters: those of scope; by (`cost`, `active`, `wall` or `tokens`)
WITH scope AS NOT MATERIALIZED ({scope}),
measured AS (
    SELECT CASE $by WHEN 'cost' THEN cost_usd WHEN 'active' THEN active_s WHEN 'wall' THEN wall_s
        ELSE coalesce(input_tokens + output_tokens, input_tokens, output_tokens) END AS value
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
