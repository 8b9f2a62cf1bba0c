-- Grain: one row per run of the tasks, in order.
-- Inputs: runs; parameter tasks (VARCHAR[]).
SELECT run_id, task_id, trace_id, agent, verdict, trigger, started_at, ended_at
FROM runs
WHERE list_contains($tasks::VARCHAR[], task_id)
ORDER BY task_id, started_at, run_id
