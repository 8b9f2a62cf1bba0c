-- Log records that tell of work, as spans. Grain: one row per such record, in the columns of `spans`. Input: logs.
-- The {{...}} pieces are compiled from metrics/conventions/logs/*.yaml.
-- Coding agents without traces log their calls, tools and decisions: what belongs to one prompt of one session is one run,
-- whose root read.sql adds. A decision taken by configuration is no person's.
-- Where their spans arrive as well, the records carry a trace id and are left alone: the spans say the same, once.
-- An evaluation result (`gen_ai.evaluation.result`) joins the trace it was made for.
CREATE OR REPLACE TEMP VIEW log_spans AS
WITH named AS (
  SELECT *, coalesce(event_name, json_extract_string(attributes, '$."event.name"'), json_extract_string(body, '$')) AS event FROM logs
),
known AS (
  SELECT *, {{family}} AS family, {{told}} AS told, coalesce(nullif(time_ns, 0), observed_ns) AS at_ns
  FROM named
),
extracted AS (
  SELECT *, json_extract_string(attributes, {{paths}}) AS k
  FROM known
  WHERE family IS NOT NULL AND coalesce(trace_id, '') = ''
),
read AS (
  SELECT
    * EXCLUDE (k),
    {{kind}} AS kind,
    {{fields}}
  FROM extracted
),
placed AS (
  SELECT
    * EXCLUDE (run),
    coalesce({{failed}}, false) AS failed,
    {{cached_outside}} AS cached_outside,
    md5(concat_ws('|', 'logs', service, conversation, run)) AS run
  FROM read
  WHERE kind IS NOT NULL AND conversation IS NOT NULL
)
SELECT
  seq, received_at, run AS trace_id,
  left(md5(concat_ws('|', run, event, at_ns, call_id, sequence, tool)), 16) AS span_id,
  left(md5(run), 16) AS parent_span_id,
  event AS name, 'internal' AS kind,
  at_ns - (coalesce(try_cast(duration_ms AS DOUBLE), 0) * 1e6)::BIGINT AS start_ns,
  at_ns AS end_ns,
  CASE WHEN failed THEN 'error' ELSE 'unset' END AS status,
  CASE WHEN failed THEN concat_ws(' ', status, coalesce(error, error_type)) END AS status_message,
  service, 'logs.' || family AS scope, NULL::VARCHAR AS scope_version, NULL::VARCHAR AS trace_state,
  json_object(
    'gen_ai.operation.name', CASE kind WHEN 'model' THEN 'chat' WHEN 'tool' THEN 'execute_tool' WHEN 'prompt' THEN 'user_input' END,
    'gen_ai.conversation.id', conversation,
    'gen_ai.agent.name', {{agent}},
    'gen_ai.tool.name', tool,
    'gen_ai.tool.call.id', call_id,
    'gen_ai.tool.call.arguments', arguments,
    -- the record is the end of the call; what came back is not logged
    'gen_ai.tool.call.result', CASE WHEN kind = 'tool' AND NOT failed THEN 'success' END,
    'gen_ai.request.model', model,
    'gen_ai.usage.input_tokens', whole_number(input_tokens)
      + CASE WHEN cached_outside THEN coalesce(whole_number(cache_read_tokens), 0) + coalesce(whole_number(cache_write_tokens), 0) ELSE 0 END,
    'gen_ai.usage.output_tokens', whole_number(output_tokens),
    'gen_ai.usage.cache_read.input_tokens', whole_number(cache_read_tokens),
    'gen_ai.usage.cache_write.input_tokens', whole_number(cache_write_tokens),
    'gen_ai.usage.cost', try_cast(cost AS DOUBLE),
    'gen_ai.input.messages', CASE WHEN kind = 'prompt' THEN prompt END,
    'agent_slo.action.attempt', whole_number(attempt),
    'agent_slo.human.decision', {{decision}}
  )::VARCHAR AS attributes,
  resource, NULL::VARCHAR AS events, NULL::VARCHAR AS links, NULL::VARCHAR AS flags
FROM placed
UNION ALL
SELECT
  seq, received_at, trace_id, left(md5(concat_ws('|', span_id, at_ns, attributes)), 16), span_id, event, 'internal', at_ns, at_ns, 'unset', NULL,
  service, scope, NULL, NULL, '{"gen_ai.operation.name":"evaluate"}', resource,
  '[' || json_object('name', event, 'time_ns', at_ns, 'attributes', attributes::JSON)::VARCHAR || ']', NULL, NULL
FROM known
WHERE event = 'gen_ai.evaluation.result' AND trace_id <> '' AND span_id <> '';
-- Log records that say what a span of theirs said: the messages of a call, and its details, which newer conventions put into
-- the logs and not on the span. Grain: one row per record; `attributes`: those of an event, the body's fields among them.
CREATE OR REPLACE TEMP VIEW log_events AS
SELECT
  seq, trace_id, span_id, coalesce(nullif(time_ns, 0), observed_ns) AS at_ns, coalesce(observed_ns, 0) AS observed_ns, event AS name,
  CASE WHEN starts_with(said, '{') AND json_valid(said) THEN json_merge_patch(coalesce(attributes, '{}'), said)::VARCHAR ELSE coalesce(attributes, '{}') END AS attributes
FROM (
  -- an object, or a text that holds one
  SELECT *, coalesce(event_name, json_extract_string(attributes, '$."event.name"')) AS event, json_extract_string(body, '$') AS said
  FROM logs
)
WHERE trace_id <> '' AND span_id <> ''
  AND (event IN ('gen_ai.choice', 'gen_ai.client.inference.operation.details') OR regexp_full_match(event, 'gen_ai\.(system|user|assistant|tool)\.message'));
