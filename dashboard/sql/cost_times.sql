-- one row per agent: where the time of its finished tasks in scope went, per task
-- inputs: scope, task_times
-- parameters: those of scope
WITH scope AS NOT MATERIALIZED ({scope})
SELECT
    s.agent,
    count(*) AS tasks,
    sum(t.model_s) / count(*) AS model_s,
    sum(t.tool_s) / count(*) AS tool_s,
    sum(t.own_s) / count(*) AS own_s,
    sum(t.human_wait_s) / count(*) AS human_wait_s
FROM task_times t
JOIN scope s USING (task_id)
WHERE t.wall_s IS NOT NULL
GROUP BY s.agent
ORDER BY tasks DESC, s.agent
