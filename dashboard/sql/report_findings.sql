-- one row per kind of finding, the most frequent first
-- inputs: findings, tasks
-- parameters: since (UTC or NULL)
SELECT
    f.kind,
    min_by(f.severity, list_position(['critical', 'high', 'medium', 'low', 'info'], f.severity)) AS severity,
    count(*) AS findings,
    count(DISTINCT f.task_id) AS tasks,
    arg_max(f.task_id, t.started_at) AS latest_task
FROM findings f
JOIN tasks t USING (task_id)
WHERE $since::TIMESTAMP IS NULL OR t.started_at >= $since::TIMESTAMP
GROUP BY f.kind
ORDER BY findings DESC, f.kind
