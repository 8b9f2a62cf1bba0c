-- one row per unprotected duplicate, newest first
-- inputs: attempts
SELECT
    a.started_at,
    a.task_id,
    a.agent,
    a.tool,
    a.cause,
    a.effect,
    a.compensated,
    a.arguments
FROM attempts a
WHERE a.duplicate = 'unprotected'
ORDER BY a.started_at DESC, a.attempt_id
LIMIT 20
