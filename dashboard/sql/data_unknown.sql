-- one row per rule and service by which tasks are unknown, the most frequent first
-- inputs: tasks
-- remembered: until the next pass
SELECT rule, service, count(*) AS tasks, max(started_at) AS last_started, arg_max(task_id, started_at) AS latest_task
FROM tasks
WHERE outcome = 'unknown'
GROUP BY rule, service
ORDER BY tasks DESC, rule, service
LIMIT 50
