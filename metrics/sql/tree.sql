-- Grain: one row per (trace_id, span_id): where a span stands in its trace.
-- Inputs: understood.
-- Walks down from the tops, so a parent cycle is simply never reached and cannot hang anything; its spans stay loose.
-- A top is a local root when it has no parent, or a parent in another process (the sender said so); any other top has a
-- parent that has not arrived: the mark that a crash leaves behind.
WITH RECURSIVE edges AS (
  SELECT u.trace_id, u.span_id, u.role, u.agent, u.tool, u.parent_span_id, u.remote_parent, p.span_id AS parent
  FROM understood u
  LEFT JOIN understood p ON p.trace_id = u.trace_id AND p.span_id = u.parent_span_id AND p.span_id <> u.span_id
),
walk AS (
  SELECT
    trace_id, span_id,
    span_id AS top,
    parent_span_id IS NULL OR remote_parent AS local_root,
    CASE WHEN role IN ('agent', 'workflow') THEN span_id END AS outer_agent,
    CASE WHEN role IN ('agent', 'workflow') THEN agent END AS near_agent,
    CASE WHEN role <> 'other' THEN span_id END AS near_step,
    NULL::VARCHAR AS parent_step,
    CASE WHEN role = 'model' THEN span_id END AS near_model,
    NULL::VARCHAR AS model_above,
    CASE WHEN role = 'tool' THEN [tool] ELSE []::VARCHAR[] END AS tools_down,
    false AS same_tool_above,
    0 AS depth
  FROM edges
  WHERE parent IS NULL
  UNION ALL
  SELECT
    e.trace_id, e.span_id,
    w.top,
    w.local_root,
    coalesce(w.outer_agent, CASE WHEN e.role IN ('agent', 'workflow') THEN e.span_id END),
    CASE WHEN e.role IN ('agent', 'workflow') THEN coalesce(e.agent, w.near_agent) ELSE w.near_agent END,
    CASE WHEN e.role <> 'other' THEN e.span_id ELSE w.near_step END,
    w.near_step,
    CASE WHEN e.role = 'model' THEN e.span_id ELSE w.near_model END,
    w.near_model,
    CASE WHEN e.role = 'tool' THEN list_append(w.tools_down, e.tool) ELSE w.tools_down END,
    e.role = 'tool' AND list_contains(w.tools_down, e.tool),
    w.depth + 1
  FROM walk w
  JOIN edges e ON e.trace_id = w.trace_id AND e.parent = w.span_id
)
SELECT * FROM walk
UNION ALL
SELECT u.trace_id, u.span_id, u.span_id, false, NULL, u.agent, NULL, NULL, NULL, NULL, []::VARCHAR[], false, 0
FROM understood u
ANTI JOIN walk w ON w.trace_id = u.trace_id AND w.span_id = u.span_id
