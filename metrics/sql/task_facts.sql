-- Grain: one row per task: what it is, and where and when it began.
-- Inputs: run_verdicts, task_runs.
-- Tables of a task's parts carry these columns, so that whoever cuts them by agent or time joins nothing: a join of a
-- million tasks by text ids costs more than all that is counted after it.
SELECT
  t.task_id,
  coalesce(
    arg_min(r.task_type_stated, t.position) FILTER (WHERE r.task_type_stated IS NOT NULL),
    arg_min(r.rule_type, t.position) FILTER (WHERE r.rule_type IS NOT NULL),
    arg_min(r.agent, t.position) FILTER (WHERE r.agent IS NOT NULL)) AS task_type,
  -- of the first run that knows: a run that lost its root lost its agent's name with it
  arg_min(r.agent, t.position) FILTER (WHERE r.agent IS NOT NULL) AS agent,
  arg_min(r.service, t.position) FILTER (WHERE r.service IS NOT NULL) AS service,
  arg_min(r.environment, t.position) FILTER (WHERE r.environment IS NOT NULL) AS environment,
  arg_max(r.app_version, t.position) FILTER (WHERE r.app_version IS NOT NULL) AS app_version,
  make_timestamp(min(r.start_ns) // 1000) AS started_at
FROM task_runs t
JOIN run_verdicts r USING (run_id)
GROUP BY t.task_id
