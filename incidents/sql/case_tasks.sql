-- Grain: one row per task.
-- Inputs: tasks; parameter tasks (VARCHAR[]).
SELECT task_id, agent, service, environment, app_version, outcome, claimed, cost_usd, input_tokens, output_tokens, wall_s, started_at
FROM tasks
WHERE task_id IN (SELECT unnest($tasks::VARCHAR[]))
