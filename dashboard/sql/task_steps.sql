-- one row per step of the task, with what its attempt is; a call that only messages show is a row of its own
-- inputs: steps, attempts
-- parameters: id (a task_id)
WITH shown AS (
  SELECT
    s.trace_id, s.span_id, s.run_id, s.role, s.agent, s.tool, s.model, s.arguments, s.result,
    s.input_tokens, s.output_tokens, s.cost_usd, s.error_class, s.finish_reason,
    make_timestamp(s.start_ns // 1000) AS started_at, make_timestamp(s.end_ns // 1000) AS ended_at,
    a.attempt_id, a.action_id, a.effect_class, a.outcome, a.disposition, a.attempt_no,
    a.duplicate, a.cause, a.effect, a.suspected
  FROM steps s
  LEFT JOIN attempts a ON a.task_id = s.task_id AND a.trace_id = s.trace_id AND a.span_id = s.span_id
  WHERE s.task_id = $id
  UNION ALL BY NAME
  SELECT
    trace_id, span_id, run_id, 'tool' AS role, agent, tool, arguments, result, error_class, started_at, ended_at,
    attempt_id, action_id, effect_class, outcome, disposition, attempt_no, duplicate, cause, effect, suspected
  FROM attempts
  WHERE task_id = $id AND seen_by = 'messages'
)
FROM shown
ORDER BY started_at, ended_at DESC, span_id
