-- Grain: one row per attempt (a tool step, or a call that only messages show), executed or not, with the verdict on repetition.
-- Inputs: executions, repeats, compensations, run_verdicts, task_runs, task_facts.
-- Steps 9 and 11 of the decision in docs/definitions: compensation, and what a trace can only make us suspect.
-- `evidence`: spans; of a call that only messages show, the span that asked for it.
WITH undone AS (
  SELECT attempt_id, arg_min(by_attempt, (undone_ns, by_attempt)) AS by_attempt FROM compensations GROUP BY attempt_id
),
-- asked for in a run that lost its root, and never seen to end: its effect is unknown
witnessed AS (
  SELECT t.task_id, r.run_id, r.last_model_span_id, r.start_ns, unnest(r.pending) AS call
  FROM run_verdicts r
  JOIN task_runs t USING (run_id)
  WHERE NOT r.root_ended
),
suspects AS (
  SELECT e.attempt_id, min(w.last_model_span_id) AS witness
  FROM executions e
  JOIN witnessed w ON w.task_id = e.task_id AND w.run_id <> e.run_id AND w.start_ns < e.start_ns
    AND w.call.name = e.tool AND (w.call.arguments = e.arguments OR w.call.arguments IS NULL)
  WHERE e.is_side_effect AND e.disposition = 'executed'
  GROUP BY e.attempt_id
)
SELECT
  e.attempt_id, e.span_id, e.trace_id, e.run_id, e.task_id,
  CASE WHEN e.is_side_effect AND e.disposition = 'executed' THEN
    'action-' || left(md5(concat_ws('|', e.task_id, e.intent, e.tool, coalesce(r.action_args_key, e.args_key, e.attempt_id))), 16) END AS action_id,
  e.tool, e.effect_class, e.class_source, e.arguments, e.idempotency_key, e.call_id,
  CASE WHEN e.disposition = 'executed' THEN e.outcome END AS outcome,
  e.disposition, e.attempt_no,
  r.duplicate, r.cause, r.effect,
  u.by_attempt IS NOT NULL AS compensated,
  (r.duplicate IS NULL AND s.witness IS NOT NULL) OR coalesce(r.beyond_window, false) AS suspected,
  coalesce(r.rule, CASE WHEN s.witness IS NOT NULL THEN 'suspected.requested_in_crashed_run' END) AS rule,
  spans_of(list_filter([e.span_id, r.earlier_span_id, split_part(u.by_attempt, '/', 2), CASE WHEN r.duplicate IS NULL THEN s.witness END], lambda i: i <> '')) AS evidence,
  make_timestamp(e.start_ns // 1000) AS started_at,
  CASE WHEN e.end_ns IS NOT NULL THEN make_timestamp(e.end_ns // 1000) END AS ended_at,
  e.error_class, e.result, e.decision, e.seen_by, e.start_ns, e.leaves,
  f.agent, f.task_type, f.service, f.environment, f.app_version, f.started_at AS task_started_at
FROM executions e
LEFT JOIN repeats r USING (attempt_id)
LEFT JOIN undone u USING (attempt_id)
LEFT JOIN suspects s USING (attempt_id)
LEFT JOIN task_facts f USING (task_id)
