-- one row per agent: where the time of its finished tasks in scope went, per task
-- inputs: scope, task_times
-- parameters: those of scope
WITH scope AS NOT MATERIALIZED ({scope})
SELECT
    s.agent,
    count(*) AS tasks,
    avg(t.model_s) AS model_s,
    avg(t.tool_s) AS tool_s,
    avg(t.own_s) AS own_s,
    avg(t.human_wait_s) AS human_wait_s
FROM task_times t
JOIN scope s USING (task_id)
WHERE t.wall_s IS NOT NULL
GROUP BY s.agent
ORDER BY tasks DESC, s.agent
