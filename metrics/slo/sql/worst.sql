-- grain: one row per task with a bad event of one objective in (start, end], the worst first
-- inputs: rows of sli_events or tasks (event_rows.sql, task_rows.sql)
WITH rows AS ({rows}), due AS (
    SELECT task_id, value,
           CASE WHEN verdict = 'unknown' OR {unmeasured} THEN event_time + to_seconds($due) ELSE event_time END AS counted_at,
           CASE WHEN verdict = 'excluded' OR {by_environment} THEN 'excluded'
                WHEN verdict = 'unknown' OR {unmeasured} THEN 'bad'
                WHEN {excluded} THEN 'excluded'
                WHEN verdict = 'good' THEN CASE WHEN {within} THEN 'good' ELSE 'bad' END
                ELSE verdict END AS class
    FROM rows
    WHERE {where}
)
SELECT task_id, max(counted_at) AS counted_at, {worst}(value) AS value, count(*) AS bad
FROM due
WHERE class = 'bad' AND counted_at > $start AND counted_at <= $end
GROUP BY task_id
ORDER BY value {direction} NULLS LAST, bad DESC, counted_at DESC, task_id
LIMIT $most
