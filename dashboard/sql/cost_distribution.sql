-- one row per measure and bucket of its values, five buckets to a factor of ten, of the tasks in scope
-- inputs: scope
-- parameters: those of scope
WITH scope AS NOT MATERIALIZED ({scope}),
measured AS (
    SELECT
        CASE WHEN cost_usd > 0 THEN floor(log10(cost_usd) * 5)::INTEGER END AS cost,
        CASE WHEN active_s > 0 THEN floor(log10(active_s) * 5)::INTEGER END AS active,
        CASE WHEN wall_s > 0 THEN floor(log10(wall_s) * 5)::INTEGER END AS wall
    FROM scope
),
counted AS (
    SELECT
        CASE
            WHEN grouping(cost) = 0 THEN 'cost'
            WHEN grouping(active) = 0 THEN 'active'
            ELSE 'wall'
        END AS measure,
        coalesce(cost, active, wall) AS bucket,
        count(*) AS tasks
    FROM measured
    GROUP BY GROUPING SETS ((cost), (active), (wall))
)
SELECT measure, bucket, pow(10, bucket / 5) AS low, pow(10, (bucket + 1) / 5) AS high, tasks
FROM counted
WHERE bucket IS NOT NULL
ORDER BY measure, bucket
