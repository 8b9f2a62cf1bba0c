-- Log records that tell of work, as spans. Grain: one row per such record, in the columns of `spans`. Input: logs.
-- Coding agents without traces (Claude Code, Codex CLI, Gemini CLI) log their calls, tools and decisions: what belongs to
-- one prompt of one session is one run, whose root read.sql adds. A decision taken by configuration is no person's.
-- Where their spans arrive as well, the records carry a trace id and are left alone: the spans say the same, once.
-- An evaluation result (`gen_ai.evaluation.result`) joins the trace it was made for.
CREATE OR REPLACE TEMP VIEW log_spans AS
WITH named AS (
  SELECT *, coalesce(event_name, json_extract_string(attributes, '$."event.name"'), json_extract_string(body, '$')) AS event FROM logs
),
known AS (
  SELECT
    *,
    CASE WHEN event GLOB 'claude_code.*' OR service = 'claude-code' THEN 'claude_code'
         WHEN event GLOB 'codex.*' THEN 'codex'
         WHEN event GLOB 'gemini_cli.*' THEN 'gemini_cli' END AS vendor,
    regexp_replace(event, '^(claude_code|codex|gemini_cli)\.', '') AS told,
    coalesce(nullif(time_ns, 0), observed_ns) AS at_ns
  FROM named
),
read AS (
  SELECT
    *,
    json_extract_string(attributes, [
      '$."session.id"', '$."conversation.id"', '$."prompt.id"', '$."prompt_id"', '$."tool_name"', '$."function_name"',
      '$."tool_use_id"', '$."call_id"', '$."tool_parameters"', '$."tool_input"', '$."arguments"', '$."function_args"',
      '$."success"', '$."error"', '$."error.message"', '$."error_type"', '$."decision"', '$."source"', '$."model"',
      '$."input_tokens"', '$."output_tokens"', '$."cache_read_tokens"', '$."cache_creation_tokens"', '$."input_token_count"',
      '$."output_token_count"', '$."cached_token_count"', '$."cached_content_token_count"', '$."cost_usd"', '$."duration_ms"',
      '$."attempt"', '$."event.kind"', '$."prompt"', '$."event.sequence"', '$."status_code"', '$."http.response.status_code"']) AS k
  FROM known
  WHERE vendor IS NOT NULL AND coalesce(trace_id, '') = ''
    AND told IN ('user_prompt', 'api_request', 'api_response', 'api_error', 'sse_event', 'tool_result', 'tool_call', 'tool_decision')
),
meant AS (
  SELECT
    *,
    coalesce(k[1], k[2]) AS conversation,
    lower(k[17]) AS decided,
    lower(coalesce(k[18], '')) AS source,
    CASE
      WHEN told = 'user_prompt' THEN 'prompt'
      WHEN told IN ('tool_result', 'tool_call') THEN 'tool'
      WHEN told = 'tool_decision' AND source GLOB 'user*' THEN 'human'
      WHEN told = 'sse_event' AND k[31] = 'response.completed' THEN 'model'
      WHEN told IN ('api_response', 'api_error') OR (told = 'api_request' AND vendor = 'claude_code') THEN 'model'
      WHEN told = 'api_request' AND vendor = 'codex' AND coalesce(k[14], k[15]) IS NOT NULL THEN 'model'
    END AS kind,
    coalesce(told = 'api_error' OR lower(k[13]) = 'false' OR (told <> 'tool_decision' AND coalesce(k[14], k[15]) IS NOT NULL), false) AS failed
  FROM read
),
placed AS (
  SELECT *, md5(concat_ws('|', 'logs', service, conversation, coalesce(k[3], k[4]))) AS run FROM meant
  WHERE kind IS NOT NULL AND conversation IS NOT NULL
)
SELECT
  seq, received_at, run AS trace_id,
  left(md5(concat_ws('|', run, event, at_ns, k[7], k[8], k[33], k[5])), 16) AS span_id,
  left(md5(run), 16) AS parent_span_id,
  event AS name, 'internal' AS kind,
  at_ns - (coalesce(try_cast(k[29] AS DOUBLE), 0) * 1e6)::BIGINT AS start_ns,
  at_ns AS end_ns,
  CASE WHEN failed THEN 'error' ELSE 'unset' END AS status,
  CASE WHEN failed THEN concat_ws(' ', coalesce(k[34], k[35]), coalesce(k[14], k[15], k[16])) END AS status_message,
  service, 'logs.' || vendor AS scope, NULL::VARCHAR AS scope_version, NULL::VARCHAR AS trace_state,
  json_object(
    'gen_ai.operation.name', CASE kind WHEN 'model' THEN 'chat' WHEN 'tool' THEN 'execute_tool' END,
    'gen_ai.conversation.id', conversation,
    'gen_ai.agent.name', vendor,
    'gen_ai.tool.name', coalesce(k[5], k[6]),
    'gen_ai.tool.call.id', coalesce(k[7], k[8]),
    'gen_ai.tool.call.arguments', coalesce(k[9], k[10], k[11], k[12]),
    -- the record is the end of the call; what came back is not logged
    'gen_ai.tool.call.result', CASE WHEN kind = 'tool' AND NOT failed THEN 'success' END,
    'gen_ai.request.model', k[19],
    'gen_ai.usage.input_tokens',
      CASE WHEN vendor = 'claude_code' THEN whole_number(k[20]) + coalesce(whole_number(k[22]), 0) + coalesce(whole_number(k[23]), 0) ELSE whole_number(k[24]) END,
    'gen_ai.usage.output_tokens', coalesce(whole_number(k[21]), whole_number(k[25])),
    'gen_ai.usage.cache_read.input_tokens', coalesce(whole_number(k[22]), whole_number(k[26]), whole_number(k[27])),
    'gen_ai.usage.cache_write.input_tokens', whole_number(k[23]),
    'gen_ai.usage.cost', try_cast(k[28] AS DOUBLE),
    'gen_ai.input.messages', CASE WHEN kind = 'prompt' THEN k[32] END,
    'agent_slo.action.attempt', whole_number(k[30]),
    'agent_slo.human.decision',
      CASE WHEN kind = 'human' OR (vendor = 'gemini_cli' AND kind = 'tool') THEN
        CASE WHEN decided IN ('accept', 'approved', 'approved_for_session') THEN 'approved'
             WHEN decided IN ('reject', 'denied', 'abort') THEN 'rejected'
             WHEN decided = 'modify' THEN 'edited' END
      END
  )::VARCHAR AS attributes,
  resource, NULL::VARCHAR AS events, NULL::VARCHAR AS links, NULL::VARCHAR AS flags
FROM placed
UNION ALL
SELECT
  seq, received_at, trace_id, left(md5(concat_ws('|', span_id, at_ns, attributes)), 16), span_id, event, 'internal', at_ns, at_ns, 'unset', NULL,
  service, scope, NULL, NULL, '{"openinference.span.kind":"EVALUATOR"}', resource,
  '[' || json_object('name', event, 'time_ns', at_ns, 'attributes', attributes::JSON)::VARCHAR || ']', NULL, NULL
FROM known
WHERE event = 'gen_ai.evaluation.result' AND trace_id <> '' AND span_id <> '';
