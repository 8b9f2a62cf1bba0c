-- one row: the task with this id, or the one this id became when runs merged
-- inputs: tasks, task_aliases
-- parameters: id
SELECT *
FROM tasks
WHERE task_id = coalesce((SELECT any_value(task_id) FROM task_aliases WHERE alias = $id), $id)
