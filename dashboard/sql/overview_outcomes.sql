-- one row per day (UTC, by start) and outcome, last 30 days with tasks
-- inputs: tasks
SELECT date_trunc('day', started_at) AS day, outcome, count(*) AS tasks
FROM tasks
WHERE started_at >= (SELECT date_trunc('day', max(started_at)) FROM tasks) - INTERVAL 29 DAY
GROUP BY ALL
ORDER BY day, outcome
