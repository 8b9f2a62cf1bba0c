-- grain: one row per decided task, judged by the conditions of one objective file
-- inputs: tasks
SELECT {source} AS sli, decided_at AS event_time,
       CASE WHEN NOT coalesce({total}, FALSE) THEN 'excluded'
            WHEN {good} IS NULL THEN 'unknown'
            WHEN {good} THEN 'good'
            ELSE 'bad' END AS verdict,
       CAST({value} AS DOUBLE) AS value, agent, task_type, service, environment, app_version,
       excluded_reason, outcome_evidence = 'inferred' AS inferred, task_id
FROM tasks
WHERE decided_at IS NOT NULL AND {meant}
