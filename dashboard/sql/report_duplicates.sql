-- one row per tool and cause of unprotected duplicates, the most frequent first
-- inputs: attempts
-- parameters: since (UTC or NULL)
SELECT
    tool,
    cause,
    count(*) AS duplicates,
    count(DISTINCT task_id) AS tasks,
    arg_max(task_id, started_at) AS latest_task
FROM attempts
WHERE duplicate = 'unprotected'
  AND ($since::TIMESTAMP IS NULL OR started_at >= $since::TIMESTAMP)
GROUP BY tool, cause
ORDER BY duplicates DESC, tool, cause
LIMIT 10
