-- Grain: one row per (trace_id, span_id): a span understood, with the run and the task it belongs to.
-- Inputs: run_steps, task_runs.
SELECT
  s.*, t.task_id,
  make_timestamp(s.start_ns // 1000) AS started_at,
  CASE WHEN s.end_ns IS NOT NULL THEN make_timestamp(s.end_ns // 1000) END AS ended_at
FROM run_steps s
LEFT JOIN task_runs t USING (run_id)
