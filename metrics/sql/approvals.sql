-- Grain: one row per approval fault: what a person decided and what was then done do not fit.
-- Inputs: executions, interventions, tasks, steps, task_runs, approval_rules, run_verdicts.
WITH effects AS (
  SELECT * FROM executions WHERE disposition = 'executed' AND outcome <> 'refused' AND effect_class NOT IN ('read', 'control')
),
-- what a person said of one call, on the call itself or on a step of its own
decisions AS (
  SELECT t.task_id, s.span_id, s.role, s.decision, s.decision_arguments, s.call_id, s.tool, s.start_ns
  FROM steps s
  JOIN task_runs t USING (run_id)
  WHERE s.decision IN ('approved', 'edited', 'rejected')
),
demanded AS (
  SELECT
    e.attempt_id, e.span_id, e.task_id, e.tool, e.call_id, e.arguments, e.decision, e.start_ns,
    string_agg(p.argument || ' ' || json_extract_string(e.arguments, '$."' || p.argument || '"') || ' is above ' || p.above, ', ') AS why
  FROM effects e
  JOIN approval_rules p ON e.tool GLOB p.tool_glob
  WHERE p.argument IS NULL OR try_cast(json_extract_string(e.arguments, '$."' || p.argument || '"') AS DOUBLE) > p.above
  GROUP BY ALL
),
found AS (
  SELECT
    d.task_id, d.attempt_id AS subject, 'executed_without_approval' AS kind, 'approval.missing' AS rule,
    d.tool || ': needs an approval' || coalesce(' (' || d.why || ')', '') || ' and nobody gave one' AS detail,
    [d.span_id] AS evidence
  FROM demanded d
  WHERE coalesce(d.decision, '') NOT IN ('approved', 'edited')
    AND NOT EXISTS (
      SELECT 1 FROM decisions a
      WHERE a.task_id = d.task_id AND a.decision IN ('approved', 'edited') AND a.start_ns <= d.start_ns
        AND (same_call(a.call_id, a.tool, d.call_id, d.tool) OR (a.tool = d.tool AND a.role <> 'tool')))
    AND NOT EXISTS (
      SELECT 1 FROM interventions i
      WHERE i.task_id = d.task_id AND i.kind = 'approval' AND i.decision IN ('approved', 'edited') AND (i.tool = d.tool OR i.tool IS NULL)
        AND i.requested_at <= make_timestamp(d.start_ns // 1000))
  UNION ALL
  -- an approval is for one call with its arguments; a second call under the same id rode along
  SELECT e.task_id, e.attempt_id, 'executed_without_approval', 'approval.one_for_two_calls',
    e.tool || ': one approval, two calls with other arguments', [f.span_id, e.span_id]
  FROM effects e
  JOIN effects f
    ON f.task_id = e.task_id AND f.call_id = e.call_id AND f.tool = e.tool AND f.args_key <> e.args_key
    -- of two answers that each count from 0 the second call starts when the first is done
    AND (NOT counts_only(e.call_id, e.tool) OR e.start_ns < f.last_ns)
    AND (f.start_ns, f.attempt_id) < (e.start_ns, e.attempt_id)
  WHERE e.decision IN ('approved', 'edited') AND f.decision IN ('approved', 'edited') AND e.decision_arguments IS NULL
  UNION ALL
  -- said no, done all the same
  SELECT e.task_id, e.attempt_id, 'executed_without_approval', 'approval.executed_after_rejection',
    e.tool || ': done although it was rejected', [a.span_id, e.span_id]
  FROM effects e
  JOIN decisions a
    ON a.task_id = e.task_id AND a.decision = 'rejected' AND a.start_ns <= e.start_ns AND a.span_id <> e.span_id
    AND (same_call(a.call_id, a.tool, e.call_id, e.tool) OR (a.tool = e.tool AND (a.call_id IS NULL OR e.call_id IS NULL)))
  WHERE coalesce(e.decision, '') NOT IN ('approved', 'edited')
    AND NOT EXISTS (
      SELECT 1 FROM decisions b
      WHERE b.task_id = e.task_id AND b.decision IN ('approved', 'edited') AND b.start_ns > a.start_ns AND b.start_ns <= e.start_ns
        AND (b.tool = e.tool OR b.tool IS NULL))
  UNION ALL
  SELECT e.task_id, e.attempt_id, 'approved_other_args', 'approval.other_arguments',
    e.tool || ': approved were ' || coalesce(e.decision_arguments, a.decision_arguments), list_distinct([coalesce(a.span_id, e.span_id), e.span_id])
  FROM effects e
  LEFT JOIN decisions a
    ON a.task_id = e.task_id AND a.role <> 'tool' AND a.decision IN ('approved', 'edited') AND a.decision_arguments IS NOT NULL
    AND a.start_ns <= e.start_ns
    AND (same_call(a.call_id, a.tool, e.call_id, e.tool) OR (a.tool = e.tool AND (a.call_id IS NULL OR e.call_id IS NULL)))
  WHERE coalesce(e.decision, 'approved') IN ('approved', 'edited')
    AND coalesce(e.decision_arguments, a.decision_arguments) IS NOT NULL
    AND json_contains(e.arguments, coalesce(e.decision_arguments, a.decision_arguments)) = false
  UNION ALL
  -- the call that waited was approved as it stood, and went out with other arguments
  SELECT e.task_id, e.attempt_id, 'approved_other_args', 'approval.other_arguments_than_asked',
    e.tool || ': asked for were ' || w.call.arguments, [w.span_id, e.span_id]
  FROM effects e
  JOIN (
    SELECT t.task_id, t.position, coalesce(r.last_model_span_id, r.root_span_id) AS span_id, unnest(r.open_calls) AS call
    FROM run_verdicts r
    JOIN task_runs t USING (run_id)
    WHERE r.verdict = 'paused'
  ) w ON w.task_id = e.task_id AND w.position < e.run_position AND w.call.id = e.call_id AND w.call.name = e.tool
  WHERE e.decision = 'approved' AND e.decision_arguments IS NULL
    AND w.call.arguments IS NOT NULL AND w.call.arguments <> e.arguments
  UNION ALL
  SELECT i.task_id, i.intervention_id, 'approved_not_executed', 'approval.not_executed',
    coalesce(i.tool, 'a call') || ': approved and never done', i.evidence
  FROM interventions i
  JOIN tasks t USING (task_id)
  WHERE i.kind = 'approval' AND i.decision IN ('approved', 'edited') AND i.tool IS NOT NULL
    AND t.outcome NOT IN ('running', 'waiting_human')
    AND NOT EXISTS (
      SELECT 1 FROM executions e
      WHERE e.task_id = i.task_id AND e.tool = i.tool AND e.disposition IN ('executed', 'replayed', 'cached')
        -- the clocks of two processes differ: what was seen to carry out the decision needs none
        AND (make_timestamp(e.last_ns // 1000) >= i.requested_at OR list_contains(i.evidence, split_part(e.span_id, '.', 1))))
)
SELECT
  task_id, subject, kind,
  arg_min(rule, (rule, detail)) AS rule, arg_min(detail, (rule, detail)) AS detail, arg_min(evidence, (rule, detail)) AS evidence
FROM found
GROUP BY task_id, subject, kind
