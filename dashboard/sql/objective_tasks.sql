-- one row per decided task in (since, until], for objectives that judge tasks by conditions of their own
-- inputs: tasks
-- parameters: since, until (UTC)
SELECT * EXCLUDE (evidence)
FROM tasks
WHERE decided_at > $since::TIMESTAMP AND decided_at <= $until::TIMESTAMP
