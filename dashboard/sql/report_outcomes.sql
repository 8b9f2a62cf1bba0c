-- one row per outcome
-- inputs: tasks
-- parameters: since (UTC or NULL)
SELECT outcome, count(*) AS tasks
FROM tasks
WHERE $since::TIMESTAMP IS NULL OR started_at >= $since::TIMESTAMP
GROUP BY outcome
ORDER BY tasks DESC, outcome
