-- Grain: one row per agent, workflow or model step of the tasks, in order: what was said and asked for.
-- Inputs: steps; parameter tasks (VARCHAR[]).
SELECT
  task_id, run_id, trace_id, span_id, role, emitter, model, user_text, output_text, parent_step_id,
  make_timestamp(start_ns // 1000) AS started_at,
  CASE WHEN end_ns IS NOT NULL THEN make_timestamp(end_ns // 1000) END AS ended_at,
  requested, list_transform(answered, lambda a: a.id) AS answered_ids
FROM steps
WHERE task_id IN (SELECT unnest($tasks::VARCHAR[])) AND role IN ('agent', 'workflow', 'model')
ORDER BY task_id, start_ns, span_id
