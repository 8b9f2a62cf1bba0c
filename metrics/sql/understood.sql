-- Grain: one row per (trace_id, span_id): a span understood on its own, before its place in the tree is known.
-- Inputs: fields, finish_classes.
-- Functions: canonical_arguments, plain_result, event_content (what SQL cannot do; see metrics/canonical.py, metrics/messages).
WITH roles AS (
  SELECT
    f.* EXCLUDE (tool, status, arguments, result, error_text, error_level),
    CASE WHEN f.error_level = 'ERROR' THEN 'error' ELSE f.status END AS status,
    coalesce(f.kind_stated,
      CASE
        -- a decision on a span that is no tool call by its own word is a person's step, even if it names the tool
        WHEN f.operation IS NULL AND f.decision IS NOT NULL THEN 'human'
        WHEN f.operation IS NULL AND f.tool IS NOT NULL AND f.tool <> f.name THEN 'tool'
        WHEN f.operation IS NULL AND f.request_model IS NOT NULL
             AND coalesce(f.input_tokens, f.output_tokens, f.output_messages, f.finish_reason) IS NOT NULL THEN 'model'
      END, 'other') AS stated_role,
    f.tool, f.arguments, f.result,
    CASE WHEN f.events IS NOT NULL THEN json_extract_string(f.events, '$[*].attributes."exception.type"')[1] END AS exception_type,
    CASE WHEN f.events IS NOT NULL THEN json_extract_string(f.events, '$[*].attributes."exception.message"')[1] END AS exception_message,
    coalesce(nullif(f.status_message, ''), f.error_text) AS told_message
  FROM fields f
),
content AS (
  SELECT
    * EXCLUDE (arguments, result),
    coalesce(arguments, carried.arguments) AS arguments,
    coalesce(result, carried.result) AS result,
    CASE WHEN status = 'error' THEN
      coalesce(
        nullif(error_type, '_OTHER'),
        exception_type,
        nullif(regexp_extract(told_message, '^([A-Za-z_][A-Za-z0-9_.]*(?:Error|Exception|Timeout|Interrupt|Refused|Failure))\b', 1), ''),
        error_type,
        'error')
      ELSE error_type
    END AS error_class,
    CASE WHEN status = 'error' THEN coalesce(told_message, exception_message) END AS error_message,
    -- an interrupt has the status of an error in some frameworks, the status ok in others, and is no error in any
    nullif(concat_ws(chr(10), error_type, exception_type, told_message, exception_message), '') AS trouble
  FROM (
    SELECT
      *,
      CASE WHEN stated_role = 'tool' AND arguments IS NULL AND contains(events, 'gen_ai.') THEN event_content(events) END AS carried
    FROM roles
  )
),
unwrapped AS (
  SELECT
    *,
    CASE WHEN stated_role = 'tool' AND (starts_with(result, '{') OR starts_with(result, '[')) THEN plain_result(result) END AS plain
  FROM content
)
SELECT
  trace_id, span_id, parent_span_id, name, start_ns, end_ns, status, error_class, error_message, service, scope, scope_version, emitter,
  deliveries,
  coalesce(contains(flags, 'remote_parent'), false) AS remote_parent,
  CASE WHEN stated_role = 'build' OR name = 'agent_slo.run.started' THEN 'other' ELSE stated_role END AS role,
  CASE
    WHEN stated_role = 'build' THEN 'build'
    WHEN name = 'agent_slo.run.started' THEN 'start_marker'
    -- the words of a user within a session that is one run
    WHEN stated_role = 'other' AND operation = 'user_input' THEN 'input'
    -- a request or a message that was taken in for a named task: the task exists, whether an agent ever began it or not
    WHEN stated_role = 'other' AND kind IN ('server', 'consumer') AND coalesce(task_id_stated, resource_task_id, input_id) IS NOT NULL THEN 'accepted'
  END AS mark,
  operation,
  agent,
  CASE WHEN stated_role IN ('tool', 'human') THEN tool END AS tool,
  coalesce(call_id, plain.call_id) AS call_id,
  CASE WHEN stated_role = 'tool' THEN canonical_arguments(arguments) END AS arguments,
  CASE WHEN stated_role = 'tool' THEN coalesce(plain.text, result) END AS result,
  -- what a framework puts in a provider field may be itself: kept as stated, prices are found by model
  provider,
  coalesce(response_model, request_model) AS model,
  CASE WHEN counted THEN whole_number(input_tokens)
    + CASE WHEN cached_outside THEN coalesce(whole_number(cache_read_tokens), 0) + coalesce(whole_number(cache_write_tokens), 0) ELSE 0 END
  END AS input_tokens,
  CASE WHEN counted THEN whole_number(output_tokens)
    + CASE WHEN reasoning_outside THEN coalesce(whole_number(reasoning_tokens), 0) ELSE 0 END
  END AS output_tokens,
  CASE WHEN counted THEN whole_number(cache_read_tokens) END AS cache_read_tokens,
  CASE WHEN counted THEN whole_number(cache_write_tokens) END AS cache_write_tokens,
  CASE WHEN counted THEN whole_number(reasoning_tokens) END AS reasoning_tokens,
  sane_number(stated_cost_usd, 1e9) AS stated_cost_usd,
  finish_reason AS finish_stated,
  conversation_id, user_id, invocation_id, environment, app_version,
  try_cast(attempt_no AS INTEGER) AS attempt_no,
  coalesce(task_id_stated, resource_task_id) AS task_id_stated,
  task_type_stated, input_id, known_outcome AS outcome_stated, known_claim AS claimed,
  sane_number(deadline_s, 1e9) AS deadline_s,
  known_trigger AS trigger_stated,
  coalesce(try_cast(dropped AS BOOLEAN), false) AS dropped,
  -- a threshold above zero in the trace state: of the sender's traces, only some were kept
  ltrim(regexp_extract(trace_state, '(?:^|,)\s*ot=(?:[^,]*;)?th:([0-9a-f]+)', 1), '0') <> '' AS sampled,
  known_effect AS effect_stated,
  sane_number(timeout_s, 1e9) AS timeout_s,
  known_plan AS on_failure, idempotency_key, known_disposition AS disposition_stated, compensates, decision, canonical_arguments(decision_arguments) AS decision_arguments,
  level, required_level,
  -- values that are none of their attribute's words: said to nobody but the doctor
  list_filter([
    CASE WHEN known_outcome IS NULL THEN 'agent_slo.task.outcome=' || left(outcome_stated, 60) END,
    CASE WHEN known_claim IS NULL THEN 'agent_slo.task.claimed=' || left(claimed, 60) END,
    CASE WHEN known_trigger IS NULL THEN 'agent_slo.run.trigger=' || left(trigger_stated, 60) END,
    CASE WHEN known_effect IS NULL THEN 'agent_slo.tool.effect=' || left(effect_stated, 60) END,
    CASE WHEN known_plan IS NULL THEN 'agent_slo.tool.on_failure=' || left(on_failure, 60) END,
    CASE WHEN known_disposition IS NULL THEN 'agent_slo.action.disposition=' || left(disposition_stated, 60) END
  ], lambda said: said IS NOT NULL) AS misstated,
  coalesce(trouble IS NOT NULL AND names_interrupt(u.trouble), false) AS is_interrupt,
  CASE WHEN contains(events, 'gen_ai.evaluation.') THEN
    -- of several the latest
    list_reverse_sort(list_filter(
      list_transform(json_extract(events, '$[*]'), lambda e: struct_pack(
        at := coalesce(try_cast(json_extract_string(e, '$.time_ns') AS BIGINT), 0),
        label := lower(json_extract_string(e, '$.attributes."gen_ai.evaluation.score.label"')),
        name := coalesce(json_extract_string(e, '$.attributes."gen_ai.evaluation.name"'), ''))),
      lambda e: e.label IS NOT NULL AND NOT judges_manner(e.name)))[1].label
  END AS evaluation,
  input_messages, output_messages, output, tool_calls, attributes, events
FROM (
  SELECT
    *,
    stated_role IN ('model', 'retrieval', 'agent', 'workflow', 'chain') AS counted,
    one_of(outcome_stated, ['completed', 'failed', 'cancelled_user', 'cancelled_system', 'handed_over', 'dead_letter']) AS known_outcome,
    one_of(claimed, ['success', 'failure']) AS known_claim,
    one_of(trigger_stated, ['start', 'resume', 'retry', 'redelivery']) AS known_trigger,
    one_of(effect_stated, ['read', 'write', 'idempotent_write', 'escalate', 'control']) AS known_effect,
    one_of(on_failure, ['retry', 'escalate', 'dead_letter']) AS known_plan,
    one_of(disposition_stated, ['executed', 'replayed', 'cached', 'denied', 'preview']) AS known_disposition
  FROM unwrapped
) u
