-- Grain: one row per (trace_id, span_id): a span understood, with the run and the task it belongs to.
-- Inputs: run_steps, task_runs.
SELECT s.*, t.task_id
FROM run_steps s
LEFT JOIN task_runs t USING (run_id)
