-- Every raw row of the new traces. Bounded by time, so that zone maps do the work of an index.
-- Inputs: spans, log_spans and log_events (logs.sql), new_traces, core._traces.
CREATE OR REPLACE TEMP TABLE known_new AS
SELECT t.* FROM core._traces t SEMI JOIN new_traces n ON n.trace_id = t.trace_id;
CREATE OR REPLACE TEMP TABLE read_between AS
SELECT coalesce(min(first_ns), 0) AS low, coalesce(max(last_ns), -1) AS high
FROM (SELECT first_ns, last_ns FROM known_new UNION ALL SELECT first_ns, last_ns FROM new_traces);
SET VARIABLE low = (SELECT low FROM read_between);
SET VARIABLE high = (SELECT high FROM read_between);
CREATE OR REPLACE TEMP TABLE touched_logs AS
SELECT s.* FROM log_spans s SEMI JOIN new_traces n ON n.trace_id = s.trace_id
WHERE s.start_ns BETWEEN getvariable('low') AND getvariable('high');
-- a record that came twice says the same once; among records of one moment a sender's own order counts
CREATE OR REPLACE TEMP TABLE told_events AS
SELECT trace_id, span_id, list(event ORDER BY at_ns, observed_ns, seq) AS events
FROM (
  SELECT e.trace_id, e.span_id, e.at_ns, min(e.observed_ns) AS observed_ns, min(e.seq) AS seq,
    json_object('name', e.name, 'time_ns', e.at_ns, 'attributes', e.attributes::JSON)::VARCHAR AS event
  FROM log_events e
  SEMI JOIN new_traces n ON n.trace_id = e.trace_id
  GROUP BY e.trace_id, e.span_id, e.at_ns, e.name, e.attributes
)
GROUP BY trace_id, span_id;
CREATE OR REPLACE TEMP TABLE touched_spans AS
SELECT
  s.* REPLACE (
    CASE WHEN e.events IS NULL THEN s.events
      ELSE '[' || array_to_string(list_concat(json_extract_string(s.events, '$[*]'), e.events), ',') || ']' END AS events)
FROM spans s
SEMI JOIN new_traces n ON n.trace_id = s.trace_id
LEFT JOIN told_events e ON e.trace_id = s.trace_id AND e.span_id = s.span_id
WHERE s.start_ns BETWEEN getvariable('low') AND getvariable('high')
UNION ALL BY NAME
SELECT * FROM touched_logs
UNION ALL BY NAME
-- the run that a prompt's log records are of: no record says when it ends, so it lasts from the first to the last
SELECT
  max(seq) AS seq, max(received_at) AS received_at, trace_id, left(md5(trace_id), 16) AS span_id, 'invoke_agent ' || min(json_extract_string(attributes, '$."gen_ai.agent.name"')) AS name,
  'internal' AS kind, min(start_ns) AS start_ns, max(end_ns) AS end_ns, 'unset' AS status, min(service) AS service,
  min(scope) AS scope,
  json_object(
    'gen_ai.operation.name', 'invoke_agent', 'gen_ai.agent.name', min(json_extract_string(attributes, '$."gen_ai.agent.name"')),
    'gen_ai.conversation.id', min(json_extract_string(attributes, '$."gen_ai.conversation.id"')),
    'gen_ai.input.messages', arg_max(json_extract_string(attributes, '$."gen_ai.input.messages"'), (start_ns, span_id))
      FILTER (WHERE json_extract_string(attributes, '$."gen_ai.input.messages"') IS NOT NULL)
  )::VARCHAR AS attributes,
  min(resource) AS resource
FROM touched_logs
WHERE parent_span_id = left(md5(trace_id), 16)
GROUP BY trace_id;
