-- Grain: one row per task: where its time went.
-- Inputs: tasks, run_steps, task_runs, human_waits.
-- Each moment belongs to one part: waiting for a person before a model call before a tool before the agent's own work. So
-- calls side by side are not added up, a tool that only asks a person is no tool time, an agent called as a tool is told by
-- its model calls, and the parts sum to the wall time. Whole microseconds, as the times of a task are.
WITH stretches AS (
  SELECT t.task_id, CASE s.role WHEN 'model' THEN 'model' ELSE 'tool' END AS kind, s.start_ns // 1000 AS began_us, s.end_ns // 1000 AS ended_us
  FROM run_steps s
  JOIN task_runs t USING (run_id)
  WHERE s.role IN ('model', 'tool', 'retrieval')
  UNION ALL
  SELECT task_id, 'human', epoch_us(began_at), epoch_us(ended_at) FROM human_waits
),
within AS (
  SELECT
    s.task_id, s.kind,
    greatest(s.began_us, epoch_us(t.started_at)) AS began_us,
    CASE WHEN t.ended_at IS NULL THEN s.ended_us ELSE least(s.ended_us, epoch_us(t.ended_at)) END AS ended_us
  FROM stretches s
  JOIN tasks t USING (task_id)
),
edges AS (
  SELECT task_id, kind, began_us AS at_us, 1 AS step FROM within WHERE ended_us > began_us
  UNION ALL
  SELECT task_id, kind, ended_us, -1 FROM within WHERE ended_us > began_us
),
moments AS (
  SELECT
    task_id, at_us,
    coalesce(sum(step) FILTER (WHERE kind = 'human'), 0) AS human,
    coalesce(sum(step) FILTER (WHERE kind = 'model'), 0) AS model,
    coalesce(sum(step) FILTER (WHERE kind = 'tool'), 0) AS tool
  FROM edges
  GROUP BY task_id, at_us
),
slices AS (
  SELECT
    task_id,
    lead(at_us) OVER along - at_us AS us,
    sum(human) OVER along > 0 AS human,
    sum(model) OVER along > 0 AS model,
    sum(tool) OVER along > 0 AS tool
  FROM moments
  WINDOW along AS (PARTITION BY task_id ORDER BY at_us)
),
parts AS (
  SELECT
    task_id,
    coalesce(sum(us) FILTER (WHERE human), 0)::BIGINT AS human_us,
    coalesce(sum(us) FILTER (WHERE model AND NOT human), 0)::BIGINT AS model_us,
    coalesce(sum(us) FILTER (WHERE tool AND NOT model AND NOT human), 0)::BIGINT AS tool_us
  FROM slices
  GROUP BY task_id
)
SELECT
  t.task_id,
  t.wall_s,
  coalesce(p.human_us, 0) / 1e6 AS human_wait_s,
  coalesce(p.model_us, 0) / 1e6 AS model_s,
  coalesce(p.tool_us, 0) / 1e6 AS tool_s,
  -- an open task has no own time yet
  (epoch_us(t.ended_at) - epoch_us(t.started_at) - coalesce(p.human_us + p.model_us + p.tool_us, 0)) / 1e6 AS own_s,
  t.agent, t.task_type, t.service, t.environment, t.app_version, t.started_at AS task_started_at
FROM tasks t
LEFT JOIN parts p USING (task_id)
