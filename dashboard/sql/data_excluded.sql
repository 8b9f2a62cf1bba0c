-- one row per reason for which tasks are in no objective, the most frequent first
-- inputs: tasks
-- remembered: until the next pass
SELECT excluded_reason, count(*) AS tasks, max(started_at) AS last_started
FROM tasks
WHERE excluded_reason IS NOT NULL
GROUP BY excluded_reason
ORDER BY tasks DESC, excluded_reason
LIMIT 50
