-- Grain: one row per run of the tasks, in order.
-- Inputs: runs; parameter tasks (VARCHAR[]).
SELECT run_id, task_id, trace_id, agent, verdict, trigger, started_at, ended_at
FROM runs
WHERE task_id IN (SELECT unnest($tasks::VARCHAR[]))
ORDER BY task_id, started_at, run_id
