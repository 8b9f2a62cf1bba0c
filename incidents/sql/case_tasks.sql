-- Grain: one row per task.
-- Inputs: tasks; parameter tasks (VARCHAR[]).
SELECT task_id, agent, service, environment, app_version, outcome, claimed, cost_usd, input_tokens, output_tokens, wall_s, started_at
FROM tasks
WHERE list_contains($tasks::VARCHAR[], task_id)
