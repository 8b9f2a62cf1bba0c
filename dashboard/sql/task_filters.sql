-- one row: what the filters of the task list can choose from
-- inputs: tasks
-- remembered: until the next pass
SELECT
    list_sort(list(DISTINCT service) FILTER (service IS NOT NULL)) AS services,
    list_sort(list(DISTINCT agent) FILTER (agent IS NOT NULL)) AS agents,
    list_sort(list(DISTINCT task_type) FILTER (task_type IS NOT NULL)) AS task_types,
    list_sort(list(DISTINCT environment) FILTER (environment IS NOT NULL)) AS environments,
    list_sort(list(DISTINCT app_version) FILTER (app_version IS NOT NULL)) AS versions,
    min(started_at) AS first_started,
    max(started_at) AS last_started
FROM tasks
