-- grain: one row per agent and service with a task in the last 28 days
-- inputs: tasks; $as_of
SELECT agent, service, max(greatest(started_at, coalesce(ended_at, started_at))) AS last_at
FROM tasks
WHERE started_at > $as_of - INTERVAL 28 DAY AND started_at <= $as_of AND excluded_reason IS NULL
GROUP BY agent, service
ORDER BY agent, service
