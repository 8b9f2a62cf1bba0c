-- one row per action of the task, in the order of their first attempts
-- inputs: actions
-- parameters: id (a task_id)
SELECT
    action_id, tool, arguments, attempts, duplicates_unprotected, duplicates_protected, no_op_repeats, cause, effect,
    compensated, settled, story, started_at
FROM actions
WHERE task_id = $id
ORDER BY started_at, action_id
