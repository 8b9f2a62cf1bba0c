-- grain: one row per event of one part of a per-task conjunction, its cut applied
-- inputs: rows of sli_events or tasks (event_rows.sql, task_rows.sql)
SELECT task_id, event_time,
       CASE WHEN verdict <> 'good' THEN verdict
            WHEN {needs_value} AND value IS NULL THEN 'unknown'
            WHEN {within} THEN 'good' ELSE 'bad' END AS verdict,
       agent, task_type, service, environment, app_version, excluded_reason, inferred
FROM ({rows})
WHERE {where}
