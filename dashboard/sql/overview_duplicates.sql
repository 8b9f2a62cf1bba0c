-- one row per unprotected duplicate, newest first
-- inputs: attempts, tasks
SELECT
    a.started_at,
    a.task_id,
    t.agent,
    a.tool,
    a.cause,
    a.effect,
    a.compensated,
    a.arguments
FROM attempts a
LEFT JOIN tasks t USING (task_id)
WHERE a.duplicate = 'unprotected'
ORDER BY a.started_at DESC, a.attempt_id
LIMIT 20
