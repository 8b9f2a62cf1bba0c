-- one row per length of wait and kind of intervention, of the tasks in scope, short ones first
-- inputs: interventions
-- parameters: those of scope
WITH moments AS (
    SELECT
        kind,
        CASE
            WHEN wait_s < 60 THEN 0
            WHEN wait_s < 300 THEN 1
            WHEN wait_s < 900 THEN 2
            WHEN wait_s < 3600 THEN 3
            WHEN wait_s < 14400 THEN 4
            WHEN wait_s < 86400 THEN 5
            ELSE 6
        END AS place
    FROM ({scope of interventions})
    WHERE wait_s IS NOT NULL
)
SELECT
    place,
    ['under 1 min', '1 to 5 min', '5 to 15 min', '15 to 60 min', '1 to 4 h', '4 to 24 h', 'over a day'][place + 1]
        AS label,
    kind,
    count(*) AS interventions
FROM moments
GROUP BY ALL
ORDER BY place, kind
