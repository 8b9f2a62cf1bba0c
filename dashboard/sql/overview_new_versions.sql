-- one row per version of a service that was first seen within the last day
-- inputs: tasks, pipeline
-- remembered: until the next pass
SELECT service, app_version, min(started_at) AS first_seen
FROM tasks
WHERE app_version IS NOT NULL
GROUP BY service, app_version
HAVING min(started_at) > (SELECT max(as_of) FROM pipeline) - INTERVAL 1 DAY
ORDER BY first_seen DESC, service, app_version
LIMIT 5
