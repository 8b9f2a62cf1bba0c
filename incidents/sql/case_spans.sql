-- Grain: one row per raw span of the traces, in order; re-deliveries once.
-- Inputs: spans; parameters traces (VARCHAR[]), low and high (start in ns: the zone maps do the work of an index).
SELECT DISTINCT ON (trace_id, span_id)
  trace_id, span_id, parent_span_id, name, kind, start_ns, end_ns, status, status_message, service, scope, scope_version,
  trace_state, attributes, resource, events, links, flags
FROM spans
WHERE start_ns BETWEEN $low::BIGINT AND $high::BIGINT AND trace_id IN (SELECT unnest($traces::VARCHAR[]))
ORDER BY trace_id, span_id, end_ns DESC NULLS LAST, seq
