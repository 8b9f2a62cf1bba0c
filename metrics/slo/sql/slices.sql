-- grain: one row per time slice that holds events of one objective
-- inputs: rows of sli_events or tasks (event_rows.sql, task_rows.sql)
-- Slices are aligned to 1970 UTC, so a slice means the same whenever it is looked at.
WITH rows AS ({rows}), due AS (
    SELECT *, CASE WHEN verdict = 'excluded' OR {by_environment} THEN 'excluded'
                   WHEN verdict = 'unknown' OR {unmeasured}
                   THEN CASE WHEN event_time + to_seconds($due) <= $end THEN 'bad' ELSE 'unknown' END
                   WHEN {excluded} THEN 'excluded'
                   WHEN verdict = 'good' THEN CASE WHEN {within} THEN 'good' ELSE 'bad' END
                   ELSE verdict END AS class
    FROM rows
    WHERE {where}
), placed AS (
    SELECT *, CASE WHEN class = 'bad' AND (verdict = 'unknown' OR {unmeasured})
                   THEN event_time + to_seconds($due) ELSE event_time END AS counted_at
    FROM due
)
SELECT CAST(floor(epoch_us(counted_at) / ($slice_s * 1000000.0)) AS BIGINT) AS slice,
       count(*) FILTER (class = 'good') AS good,
       count(*) FILTER (class = 'bad') AS bad,
       count(*) FILTER (class = 'unknown') AS unknown,
       count(*) FILTER (class = 'excluded') AS excluded,
       count(*) FILTER (class IN ('good', 'bad') AND inferred) AS inferred,
       min(counted_at) FILTER (class IN ('good', 'bad')) AS first_at
FROM placed
WHERE counted_at > $start AND counted_at <= $end
GROUP BY slice
ORDER BY slice
