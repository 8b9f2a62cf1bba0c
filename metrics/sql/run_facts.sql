-- Grain: one row per run: what its steps show, before any verdict.
-- Inputs: run_steps, tool_classes, task_rules.
WITH work AS (
  SELECT
    *,
    coalesce(end_ns, start_ns) AS last_ns,
    span_id = split_part(run_id, '/', 2) AS is_root,
    role = 'tool' AND bool_or(role = 'tool' AND result IS NOT NULL) OVER (PARTITION BY trace_id) AS results_captured
  FROM run_steps
  WHERE run_id IS NOT NULL
),
models AS (
  SELECT
    *,
    row_number() OVER (PARTITION BY run_id ORDER BY start_ns DESC, last_ns DESC, span_id DESC) AS from_end,
    row_number() OVER (PARTITION BY run_id ORDER BY start_ns, last_ns, span_id) AS from_start
  FROM work
  WHERE is_model_call
),
last_model AS (SELECT * FROM models WHERE from_end = 1),
-- the half of a tool call that only asked for a person: an interrupt, a text that says so, or no result where others have
-- one; where no results are captured at all, a call with no model call after it
tools AS (
  SELECT
    w.*,
    w.is_interrupt
      -- work that was given to a person is gone, whatever came back; a preview or a cached answer that says so is no call waiting for anyone
      OR (w.disposition_stated IS NULL AND NOT coalesce(k.hands_over, false) AND w.results_captured AND w.result IS NULL AND w.status <> 'error')
      OR (w.disposition_stated IS NULL AND NOT coalesce(k.hands_over, false) AND NOT w.results_captured AND w.result IS NULL AND w.status <> 'error' AND w.start_ns >= m.last_ns)
      OR says_pause(w.result) AS is_half,
    w.is_interrupt OR says_pause(w.result) AS says_pause,
    coalesce(k.configured_effect, w.effect_stated, k.guessed_effect) IN ('write', 'idempotent_write') AS writes
  FROM work w
  LEFT JOIN last_model m ON m.run_id = w.run_id
  LEFT JOIN tool_classes k ON k.tool = w.tool
  WHERE w.role = 'tool'
),
-- what the root's own record of the talk says was answered: a call that only gave the answer its shape has no span
came_back AS (
  SELECT run_id, flatten(list(list_transform(answered, lambda a: a.id))) AS ids FROM work WHERE is_root AND len(answered) > 0 GROUP BY run_id
),
asked AS (
  SELECT run_id, start_ns, unnest(requested) AS call FROM last_model
),
pending AS (
  SELECT a.run_id, list(a.call ORDER BY a.call) AS calls
  FROM asked a
  LEFT JOIN came_back b ON b.run_id = a.run_id
  WHERE NOT coalesce(list_contains(b.ids, a.call.id), false) AND NOT EXISTS (
    SELECT 1 FROM tools t
    WHERE t.run_id = a.run_id AND NOT t.is_half
      AND ((t.call_id = a.call.id AND (t.start_ns >= a.start_ns OR NOT counts_only(t.call_id, t.tool)))
           OR ((t.call_id IS NULL OR a.call.id IS NULL) AND bare_tool(t.tool) = bare_tool(a.call.name) AND t.start_ns >= a.start_ns))
  )
  GROUP BY a.run_id
),
halves AS (
  SELECT
    t.run_id,
    bool_or(t.says_pause) AS says_pause,
    list(struct_pack(id := t.call_id, name := t.tool, arguments := t.arguments) ORDER BY t.start_ns, t.span_id) AS calls,
    list(t.span_id ORDER BY t.start_ns, t.span_id) AS span_ids
  FROM tools t
  LEFT JOIN last_model m ON m.run_id = t.run_id
  WHERE t.is_half AND (m.run_id IS NULL OR t.start_ns >= m.start_ns)
  GROUP BY t.run_id
),
-- an interrupt that stopped the run outside any tool (a middleware, a node of the graph)
interrupts AS (
  SELECT w.run_id, list(w.span_id ORDER BY w.start_ns, w.span_id) AS span_ids
  FROM work w
  LEFT JOIN last_model m ON m.run_id = w.run_id
  WHERE w.is_interrupt AND w.role <> 'tool' AND (m.run_id IS NULL OR w.last_ns >= m.start_ns)
  GROUP BY w.run_id
),
tool_facts AS (
  SELECT run_id, bool_or(writes AND NOT is_half AND status <> 'error') AS wrote, max(start_ns) FILTER (WHERE NOT same_tool_above) AS last_tool_ns,
    max(start_ns) FILTER (WHERE NOT same_tool_above AND result IS NULL) AS last_bare_tool_ns, count(*) FILTER (WHERE NOT same_tool_above) AS tool_calls,
    list(DISTINCT call_id ORDER BY call_id) FILTER (WHERE call_id IS NOT NULL AND NOT is_half) AS executed_ids,
    list(DISTINCT struct_pack(id := call_id, name := tool, arguments := arguments)) FILTER (WHERE tool IS NOT NULL AND NOT is_half) AS executed_calls
  FROM tools
  GROUP BY run_id
),
-- an agent below the root failed, and no model call succeeded after it: nothing above it recovered
agent_errors AS (
  SELECT w.run_id, arg_min(w.span_id, (w.start_ns, w.span_id)) AS span_id
  FROM work w
  WHERE w.role IN ('agent', 'workflow') AND w.status = 'error' AND NOT w.is_interrupt
    AND NOT EXISTS (
      SELECT 1 FROM models m WHERE m.run_id = w.run_id AND m.status <> 'error' AND m.start_ns >= w.last_ns
    )
  GROUP BY w.run_id
),
whole AS (
  SELECT
    run_id,
    any_value(trace_id) AS trace_id,
    min(start_ns) AS start_ns,
    max(last_ns) AS last_ns,
    arg_max(span_id, (last_ns, span_id)) AS last_span_id,
    arg_min(service, (start_ns, span_id)) FILTER (WHERE service IS NOT NULL) AS service,
    arg_min(environment, (start_ns, span_id)) FILTER (WHERE environment IS NOT NULL) AS environment,
    arg_min(app_version, (start_ns, span_id)) FILTER (WHERE app_version IS NOT NULL) AS app_version,
    coalesce(
      arg_min(agent, (NOT is_root, start_ns, span_id)) FILTER (WHERE agent IS NOT NULL),
      -- frameworks that name an agent only in its span's name: without the operation before it or after it
      any_value(nullif(regexp_replace(name, '^(invoke_agent|invoke_workflow|workflow) |\.(run|continue_run|kickoff|workflow|agent)$', ''), ''))
        FILTER (WHERE is_root AND role IN ('agent', 'workflow'))
    ) AS agent,
    min(conversation_id) AS conversation_id,
    min(invocation_id) AS invocation_id,
    min(user_id) AS user_id,
    min(task_id_stated) AS task_id_stated,
    arg_min(task_type_stated, (start_ns, span_id)) FILTER (WHERE task_type_stated IS NOT NULL) AS task_type_stated,
    min(input_id) AS input_id,
    arg_max(outcome_stated, (start_ns, span_id)) FILTER (WHERE outcome_stated IS NOT NULL) AS outcome_stated,
    arg_max(claimed, (start_ns, span_id)) FILTER (WHERE claimed IS NOT NULL) AS claimed,
    max(deadline_s) AS deadline_s,
    min(trigger_stated) AS trigger_stated,
    bool_or(dropped) AS dropped,
    bool_or(sampled) AS sampled,
    -- taken in, and nothing of the work itself
    NOT bool_or(role IN ('agent', 'workflow', 'model', 'tool') OR coalesce(mark = 'start_marker', false)) AS only_accepted,
    arg_max(evaluation, (start_ns, span_id)) FILTER (WHERE evaluation IS NOT NULL) AS evaluation,
    count(*) FILTER (WHERE is_model_call) AS model_calls,
    bool_or(is_root) AS has_root,
    bool_or(is_root AND end_ns IS NOT NULL) AS root_ended,
    any_value(span_id) FILTER (WHERE is_root) AS root_span_id,
    max(end_ns) FILTER (WHERE is_root) AS root_end_ns,
    bool_or(is_root AND status = 'error' AND NOT is_interrupt) AS root_error,
    any_value(error_class) FILTER (WHERE is_root) AS root_error_class,
    any_value(finish_class) FILTER (WHERE is_root) AS root_finish,
    any_value(output_text) FILTER (WHERE is_root) AS root_output,
    coalesce(bool_or(is_root AND role IN ('agent', 'workflow')), false) AS has_agent_root,
    any_value(resumes) FILTER (WHERE is_root) AS resumes_root,
    any_value(deferred) FILTER (WHERE is_root) AS root_deferred,
    coalesce(any_value(output_tokens) FILTER (WHERE is_root), 0) AS root_output_tokens,
    arg_min(user_text, (NOT is_root, start_ns, span_id)) FILTER (WHERE user_text IS NOT NULL) AS user_text,
    -- a runtime may dress the user's words for the model: both spellings say the same request
    coalesce(list(DISTINCT user_text ORDER BY user_text) FILTER (WHERE user_text IS NOT NULL), []) AS user_texts,
    flatten(list(approvals) FILTER (WHERE len(approvals) > 0)) AS approvals
  FROM work
  GROUP BY run_id
)
SELECT
  w.*,
  m.span_id AS last_model_span_id, m.start_ns AS last_model_start_ns, m.last_ns AS last_model_ns,
  coalesce(m.status = 'error' AND NOT m.is_interrupt, false) AS last_model_error,
  m.error_class AS last_model_error_class,
  m.finish_class AS last_model_finish,
  m.output_text AS last_model_output,
  coalesce(m.output_tokens, 0) AS last_model_output_tokens,
  coalesce(m.said_nothing, false) AS last_model_said_nothing,
  m.span_id IS NOT NULL AND m.status <> 'error' AND m.output_text IS NULL AND len(m.requested) = 0 AND m.finish_reason IS NULL
    AND m.input_tokens IS NULL AND m.output_tokens IS NULL AS last_model_empty,
  coalesce(p.calls, []) AS pending,
  coalesce(h.calls, []) AS halves,
  list_concat(coalesce(h.span_ids, []), coalesce(i.span_ids, [])) AS half_span_ids,
  coalesce(h.says_pause, false) OR i.run_id IS NOT NULL AS says_pause,
  says_pause(w.root_output) AS answer_says_pause,
  list_concat(coalesce(w.root_deferred, []), coalesce(m.deferred, [])) AS deferred,
  coalesce(t.tool_calls, 0) AS tool_calls,
  coalesce(t.wrote, false) AS wrote,
  len(m.requested) > 0 AND len(list_filter(m.requested, lambda c: NOT coalesce(list_contains(b.ids, c.id), false))) = 0 AS all_came_back,
  t.last_tool_ns, t.last_bare_tool_ns,
  coalesce(t.executed_ids, []) AS executed_ids,
  coalesce(t.executed_calls, []) AS executed_calls,
  coalesce(f.answered, []) AS history,
  e.span_id AS agent_error_span_id,
  r.task_type AS rule_type, r.quiet_s, r.deadline_s AS rule_deadline_s, r.human_deadline_s, r.gate_is_intervention
FROM whole w
LEFT JOIN last_model m ON m.run_id = w.run_id
LEFT JOIN models f ON f.run_id = w.run_id AND f.from_start = 1
LEFT JOIN pending p ON p.run_id = w.run_id
LEFT JOIN came_back b ON b.run_id = w.run_id
LEFT JOIN halves h ON h.run_id = w.run_id
LEFT JOIN interrupts i ON i.run_id = w.run_id
LEFT JOIN tool_facts t ON t.run_id = w.run_id
LEFT JOIN agent_errors e ON e.run_id = w.run_id
-- the first rule that matches; the last row of task_rules matches everything
LEFT JOIN LATERAL (
  SELECT * FROM task_rules r
  WHERE (r.agent_glob IS NULL OR w.agent GLOB r.agent_glob) AND (r.service_glob IS NULL OR w.service GLOB r.service_glob)
    AND (r.type_match IS NULL OR r.type_match = w.task_type_stated)
  ORDER BY r.position LIMIT 1
) r ON true
