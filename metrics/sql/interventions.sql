-- Grain: one row per moment at which a human took part in a task.
-- Inputs: run_verdicts, task_runs, task_facts, executions, steps.
-- A pause is one moment however many calls wait in it; what became of it is read from what is stated, else from what the
-- next runs did with the waiting calls.
WITH placed AS (
  SELECT
    t.task_id, r.run_id, r.verdict, r.ended_at AS requested_at, r.open_calls, r.evidence, r.rule, t.position,
    lead(r.started_at) OVER (PARTITION BY t.task_id ORDER BY t.position) AS resumed_at
  FROM run_verdicts r
  JOIN task_runs t USING (run_id)
),
pauses AS (
  SELECT * EXCLUDE (verdict) FROM placed WHERE verdict = 'paused'
),
next_runs AS (
  SELECT p.run_id AS paused_run, min(t.position) AS position
  FROM pauses p
  JOIN task_runs t ON t.task_id = p.task_id AND t.position > p.position
  GROUP BY p.run_id
),
waiting AS (
  SELECT run_id AS paused_run, task_id, position, unnest(open_calls) AS call FROM pauses
),
-- the calls that waited, met again in a later run
met AS (
  SELECT
    w.paused_run,
    arg_min(e.decision, (e.start_ns, e.attempt_id)) FILTER (WHERE e.decision IS NOT NULL) AS stated,
    bool_or(e.disposition = 'executed') AS executed,
    bool_or(e.disposition = 'executed' AND e.seen_by = 'span') AS by_span,
    bool_or(e.disposition = 'denied') AS denied,
    bool_or(e.disposition = 'executed' AND e.arguments <> w.call.arguments) AS other_arguments,
    list(e.span_id ORDER BY e.start_ns, e.span_id) AS span_ids,
    arg_min(e.level, (e.start_ns, e.attempt_id)) FILTER (WHERE e.level IS NOT NULL) AS level,
    arg_min(e.required_level, (e.start_ns, e.attempt_id)) FILTER (WHERE e.required_level IS NOT NULL) AS required_level
  FROM waiting w
  JOIN executions e
    ON e.task_id = w.task_id AND e.run_position > w.position
    AND (same_call(e.call_id, e.tool, w.call.id, w.call.name) OR ((e.call_id IS NULL OR w.call.id IS NULL) AND e.tool = w.call.name))
  GROUP BY w.paused_run
),
said AS (
  SELECT
    w.paused_run,
    arg_min(a.decision, list_position(['rejected', 'edited', 'answered', 'approved'], a.decision)) AS decision
  FROM waiting w
  JOIN task_runs t ON t.task_id = w.task_id AND t.position > w.position
  JOIN (SELECT run_id, unnest(approvals, recursive := true) FROM run_verdicts) a(run_id, id, decision) ON a.run_id = t.run_id
  WHERE a.id = w.call.id OR a.id IS NULL
  GROUP BY w.paused_run
),
refusals AS (
  SELECT w.paused_run, bool_or(is_denial(h.text)) AS denied, true AS replied,
    bool_and(NOT is_denial(h.text)) AS no_denial
  FROM waiting w
  JOIN task_runs t ON t.task_id = w.task_id AND t.position > w.position
  JOIN (SELECT run_id, unnest(history, recursive := true) FROM run_verdicts) h(run_id, id, text) ON h.run_id = t.run_id AND h.id = w.call.id
  GROUP BY w.paused_run
),
-- a question put in words, and the words that answered it
replies AS (
  SELECT p.run_id AS paused_run,
    CASE WHEN bool_or(begins_with_yes(r.user_text) OR urges_on(r.user_text)) THEN 'approved' WHEN bool_or(begins_with_no(r.user_text)) THEN 'rejected' ELSE 'answered' END AS decision
  FROM pauses p
  JOIN next_runs n ON n.paused_run = p.run_id
  JOIN task_runs t ON t.task_id = p.task_id AND t.position = n.position
  JOIN run_verdicts r ON r.run_id = t.run_id
  WHERE p.rule = 'run.paused.answer_asks' AND r.user_text IS NOT NULL
  GROUP BY p.run_id
),
-- a step of the next run that states a decision without being the call itself
stated AS (
  SELECT p.run_id AS paused_run, arg_min(s.decision, (s.start_ns, s.span_id)) AS decision,
    arg_min(s.level, (s.start_ns, s.span_id)) FILTER (WHERE s.level IS NOT NULL) AS level,
    arg_min(s.required_level, (s.start_ns, s.span_id)) FILTER (WHERE s.required_level IS NOT NULL) AS required_level,
    list(s.span_id ORDER BY s.start_ns, s.span_id) AS span_ids
  FROM pauses p
  JOIN next_runs n ON n.paused_run = p.run_id
  JOIN task_runs t ON t.task_id = p.task_id AND t.position = n.position
  JOIN steps s ON s.run_id = t.run_id AND s.decision IS NOT NULL
  GROUP BY p.run_id
),
approvals AS (
  SELECT
    p.task_id, p.run_id,
    -- what a question brings back is an answer
    CASE WHEN asks_a_person(p.open_calls[1].name) THEN 'answer' ELSE 'approval' END AS kind,
    coalesce(
      m.stated, d.decision, y.decision,
      CASE
        WHEN s.decision = 'rejected' THEN 'rejected'
        WHEN s.decision IN ('edited', 'answered') THEN s.decision
        WHEN asks_a_person(p.open_calls[1].name) AND (m.executed OR f.replied) AND NOT coalesce(f.denied, false) THEN 'answered'
        WHEN m.executed AND m.other_arguments THEN 'edited'
        WHEN m.executed THEN 'approved'
        WHEN m.denied OR f.denied THEN 'rejected'
        WHEN s.decision = 'approved' THEN 'approved'
        -- answered without being run: someone said no, or said something else
        WHEN f.replied THEN 'rejected'
      END) AS decision,
    coalesce(m.level, d.level) AS level, coalesce(m.required_level, d.required_level) AS required_level,
    p.open_calls[1].name AS tool,
    p.requested_at, p.resumed_at AS decided_at,
    list_distinct(list_concat(p.evidence, coalesce(m.span_ids, []), coalesce(d.span_ids, []))) AS evidence
  FROM pauses p
  LEFT JOIN met m ON m.paused_run = p.run_id
  LEFT JOIN said s ON s.paused_run = p.run_id
  LEFT JOIN refusals f ON f.paused_run = p.run_id
  LEFT JOIN stated d ON d.paused_run = p.run_id
  LEFT JOIN replies y ON y.paused_run = p.run_id
  -- a call that came back without a word of denial was carried out by whoever had asked (a browser, say): nothing tells
  -- of a person
  WHERE NOT coalesce(p.rule = 'run.paused.call_left_open' AND f.no_denial AND NOT coalesce(m.by_span, false) AND NOT asks_a_person(p.open_calls[1].name) AND coalesce(m.stated, d.decision, s.decision) IS NULL AND NOT coalesce(m.denied, false), false)
),
-- decisions stated where no run had paused: in-process approvals, answers, take-overs
in_process AS (
  SELECT
    t.task_id, s.run_id,
    CASE s.decision WHEN 'answered' THEN 'answer' WHEN 'took_over' THEN 'take_over' ELSE 'approval' END AS kind,
    s.decision, s.level, s.required_level, s.tool,
    make_timestamp(s.start_ns // 1000) AS requested_at,
    CASE WHEN s.role = 'human' AND s.end_ns IS NOT NULL THEN make_timestamp(s.end_ns // 1000) END AS decided_at,
    [s.span_id] AS evidence,
    s.span_id
  FROM steps s
  JOIN task_runs t USING (run_id)
  WHERE s.decision IS NOT NULL AND NOT s.same_tool_above
    AND NOT EXISTS (SELECT 1 FROM approvals a WHERE a.task_id = t.task_id AND list_contains(a.evidence, s.span_id))
    AND NOT EXISTS (SELECT 1 FROM executions e WHERE e.trace_id = s.trace_id AND e.span_id = s.span_id AND e.effect_class = 'escalate')
),
escalations AS (
  SELECT
    e.task_id, e.run_id, 'escalation' AS kind, e.decision, e.level, e.required_level, e.tool,
    make_timestamp(e.start_ns // 1000) AS requested_at,
    -- a hand-over is told and done with; a question is over when the tool brings the answer
    CASE WHEN e.decision IS NOT NULL AND e.decision <> 'took_over' AND e.end_ns IS NOT NULL THEN make_timestamp(e.end_ns // 1000) END AS decided_at,
    [e.span_id] AS evidence,
    e.span_id
  FROM executions e
  WHERE e.effect_class = 'escalate' AND e.disposition = 'executed' AND e.outcome <> 'refused'
    -- one hand-over, said twice in a row, is one moment
    AND NOT EXISTS (
      SELECT 1 FROM executions b
      WHERE b.task_id = e.task_id AND b.effect_class = 'escalate' AND b.disposition = 'executed' AND b.args_key = e.args_key
        AND (b.start_ns, b.attempt_id) < (e.start_ns, e.attempt_id))
    -- and the tool that paused the run to ask is already counted as the pause
    AND NOT EXISTS (SELECT 1 FROM waiting w WHERE w.task_id = e.task_id AND w.call.name = e.tool)
),
moments AS (
  SELECT *, run_id AS moment FROM approvals
  UNION ALL BY NAME
  SELECT * EXCLUDE (span_id), run_id || '/' || span_id AS moment FROM in_process
  UNION ALL BY NAME
  SELECT * EXCLUDE (span_id), run_id || '/' || span_id AS moment FROM escalations
)
SELECT
  'human-' || left(md5(m.moment), 16) AS intervention_id,
  m.task_id, m.kind, m.decision, m.level, m.required_level, m.tool, m.requested_at, m.decided_at,
  -- the clocks of two processes differ
  CASE WHEN m.decided_at IS NOT NULL THEN greatest(epoch(m.decided_at) - epoch(m.requested_at), 0) END AS wait_s,
  spans_of(m.evidence) AS evidence,
  f.agent, f.task_type, f.service, f.environment, f.app_version, f.started_at AS task_started_at
FROM moments m
LEFT JOIN task_facts f USING (task_id)
