-- Grain: one row per (trace_id, span_id): a span understood on its own, before its place in the tree is known.
-- Inputs: fields, operation_roles, finish_classes, pause_errors.
-- Functions: canonical_arguments, read_messages (the two things SQL cannot do; see metrics/canonical.py, messages.py).
WITH roles AS (
  SELECT
    f.*,
    coalesce(o.role,
      CASE
        -- a decision on a span that is no tool call by its own word is a person's step, even if it names the tool
        WHEN f.operation IS NULL AND f.decision IS NOT NULL THEN 'human'
        WHEN f.operation IS NULL AND f.tool IS NOT NULL THEN 'tool'
        WHEN f.operation IS NULL AND f.request_model IS NOT NULL
             AND coalesce(f.input_tokens, f.output_tokens, f.output_messages, f.finish_reason) IS NOT NULL THEN 'model'
      END, 'other') AS stated_role,
    regexp_extract(f.finish_reason, '[A-Za-z_-]+') AS finish_word,
    CASE WHEN f.status = 'error' THEN
      coalesce(
        nullif(f.error_type, '_OTHER'),
        json_extract_string(f.events, '$[*].attributes."exception.type"')[1],
        nullif(regexp_extract(f.status_message, '^([A-Za-z_][A-Za-z0-9_.]*(?:Error|Exception|Timeout|Interrupt|Refused|Failure))\b', 1), ''),
        f.error_type,
        'error')
      ELSE f.error_type
    END AS error_class,
    CASE WHEN f.status = 'error' THEN
      coalesce(nullif(f.status_message, ''), json_extract_string(f.events, '$[*].attributes."exception.message"')[1])
    END AS error_message
  FROM fields f
  LEFT JOIN operation_roles o ON o.operation = coalesce(f.operation, split_part(f.name, ' ', 1))
),
told AS (
  SELECT
    *,
    CASE WHEN stated_role IN ('model', 'agent', 'workflow') THEN
      read_messages(
        input_messages, output_messages, output,
        CASE WHEN input_messages IS NULL AND output_messages IS NULL THEN attributes END,
        CASE WHEN input_messages IS NULL AND output_messages IS NULL THEN events END)
    END AS said
  FROM roles
)
SELECT
  trace_id, span_id, parent_span_id, name, start_ns, end_ns, status, error_class, error_message, service, scope, emitter,
  deliveries,
  coalesce(contains(flags, 'remote_parent'), false) AS remote_parent,
  CASE WHEN stated_role = 'build' OR name = 'agent_slo.run.started' THEN 'other' ELSE stated_role END AS role,
  CASE WHEN stated_role = 'build' THEN 'build' WHEN name = 'agent_slo.run.started' THEN 'start_marker' END AS mark,
  operation,
  agent, tool, call_id,
  CASE WHEN stated_role = 'tool' THEN canonical_arguments(arguments) END AS arguments,
  CASE WHEN stated_role = 'tool' THEN result END AS result,
  -- what a framework puts in a provider field may be itself: kept as stated, prices are found by model
  provider,
  coalesce(response_model, request_model) AS model,
  CASE WHEN stated_role IN ('model', 'agent', 'workflow') THEN try_cast(try_cast(input_tokens AS DOUBLE) AS BIGINT) END AS input_tokens,
  CASE WHEN stated_role IN ('model', 'agent', 'workflow') THEN try_cast(try_cast(output_tokens AS DOUBLE) AS BIGINT) END AS output_tokens,
  CASE WHEN stated_role IN ('model', 'agent', 'workflow') THEN try_cast(try_cast(cache_read_tokens AS DOUBLE) AS BIGINT) END AS cache_read_tokens,
  CASE WHEN stated_role IN ('model', 'agent', 'workflow') THEN try_cast(try_cast(cache_write_tokens AS DOUBLE) AS BIGINT) END AS cache_write_tokens,
  CASE WHEN stated_role IN ('model', 'agent', 'workflow') THEN try_cast(try_cast(reasoning_tokens AS DOUBLE) AS BIGINT) END AS reasoning_tokens,
  try_cast(stated_cost_usd AS DOUBLE) AS stated_cost_usd,
  finish_word AS finish_reason,
  (SELECT c.class FROM finish_classes c WHERE c.word = lower(finish_word)) AS finish_class,
  conversation_id, user_id, invocation_id, environment, app_version,
  try_cast(attempt_no AS INTEGER) AS attempt_no,
  coalesce(task_id_stated, resource_task_id) AS task_id_stated,
  task_type_stated, input_id, outcome_stated, claimed,
  try_cast(deadline_s AS DOUBLE) AS deadline_s,
  trigger_stated,
  coalesce(try_cast(dropped AS BOOLEAN), false) AS dropped,
  effect_stated,
  try_cast(timeout_s AS DOUBLE) AS timeout_s,
  on_failure, idempotency_key, disposition_stated, compensates, decision, canonical_arguments(decision_arguments) AS decision_arguments,
  level, required_level,
  -- an interrupt has the status of an error in some frameworks and is none
  EXISTS (SELECT 1 FROM pause_errors p WHERE contains(error_class, p.class)) AS is_interrupt,
  said.user_text AS user_text,
  said.output_text AS output_text,
  said.requested AS requested,
  said.deferred AS deferred,
  said.answered AS answered,
  said.approvals AS approvals,
  lower(json_extract_string(events, '$[*].attributes."gen_ai.evaluation.score.label"')[1]) AS evaluation
FROM told
