-- Grain: one row: a task and its cost. An earlier id of a task whose runs were merged leads to it too.
-- Inputs: tasks, task_aliases.
-- Parameters: id.
SELECT task_id, agent, task_type, outcome, cost_usd, cost_complete, input_tokens, output_tokens
FROM tasks
WHERE task_id = coalesce((SELECT min(task_id) FROM task_aliases WHERE alias = $id), $id)
