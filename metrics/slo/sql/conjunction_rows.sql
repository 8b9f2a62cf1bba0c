-- grain: one row per task: bad if any part is bad, else unknown if any is, good if the rest is good
-- inputs: the rows of every part (part_rows.sql)
SELECT {source} AS sli, max(event_time) AS event_time,
       CASE WHEN bool_or(verdict = 'bad') THEN 'bad'
            WHEN bool_or(verdict = 'unknown') THEN 'unknown'
            WHEN bool_or(verdict = 'good') THEN 'good'
            ELSE 'excluded' END AS verdict,
       CAST(NULL AS DOUBLE) AS value, any_value(agent) AS agent, any_value(task_type) AS task_type,
       any_value(service) AS service, any_value(environment) AS environment,
       any_value(app_version) AS app_version, max(excluded_reason) AS excluded_reason,
       bool_or(inferred) AS inferred, task_id
FROM ({parts})
GROUP BY task_id
