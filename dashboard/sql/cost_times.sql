-- one row per agent: where the time of its finished tasks in scope went, per task
-- inputs: task_times
-- parameters: those of scope
SELECT
    agent,
    count(*) AS tasks,
    avg(model_s) AS model_s,
    avg(tool_s) AS tool_s,
    avg(own_s) AS own_s,
    avg(human_wait_s) AS human_wait_s
FROM ({scope of task_times})
WHERE wall_s IS NOT NULL
GROUP BY agent
ORDER BY tasks DESC, agent
