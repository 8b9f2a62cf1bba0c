-- one row per run of the task
-- inputs: runs
-- parameters: id (a task_id)
SELECT run_id, trace_id, agent, verdict, trigger, started_at, ended_at, rule, evidence, joined_by
FROM runs
WHERE task_id = $id
ORDER BY started_at, run_id
