-- Grain: one row per (trace_id, span_id): where a span stands in its trace, and its role there.
-- Inputs: understood.
-- Walks down from the tops, so a parent cycle is simply never reached and cannot hang anything; its spans stay loose.
-- A top is a local root when it has no parent, or a parent in another process (the sender said so); any other top has a
-- parent that has not arrived: the mark that a crash leaves behind.
-- A chain is a workflow where no agent stands above it. An agent that starts after the agent above it has ended is a
-- resume in the same trace: a run of its own.
WITH RECURSIVE edges AS (
  SELECT
    u.trace_id, u.span_id, u.role, u.agent, u.tool, u.parent_span_id, u.remote_parent, u.start_ns, u.end_ns,
    u.role IN ('agent', 'workflow') AS is_agent,
    p.span_id AS parent
  FROM understood u
  LEFT JOIN understood p ON p.trace_id = u.trace_id AND p.span_id = u.parent_span_id AND p.span_id <> u.span_id
),
walk AS (
  SELECT
    trace_id, span_id,
    span_id AS top,
    parent_span_id IS NULL OR remote_parent AS local_root,
    CASE WHEN role <> 'chain' THEN role WHEN parent_span_id IS NULL OR remote_parent THEN 'workflow' ELSE 'other' END AS role,
    CASE WHEN is_agent OR role = 'chain' THEN span_id END AS outer_agent,
    CASE WHEN is_agent OR role = 'chain' THEN end_ns END AS outer_end_ns,
    NULL::VARCHAR AS resumes,
    CASE WHEN is_agent OR role = 'chain' THEN agent END AS near_agent,
    CASE WHEN role NOT IN ('other', 'chain') THEN span_id END AS near_step,
    NULL::VARCHAR AS parent_step,
    CASE WHEN role = 'model' THEN span_id END AS near_model,
    CASE WHEN role = 'model' THEN end_ns END AS near_model_end_ns,
    NULL::VARCHAR AS model_above,
    CASE WHEN role = 'tool' THEN [bare_tool(tool)] ELSE []::VARCHAR[] END AS tools_down,
    false AS same_tool_above,
    0 AS depth
  FROM edges
  WHERE parent IS NULL
  UNION ALL
  SELECT
    e.trace_id, e.span_id,
    w.top,
    w.local_root,
    CASE WHEN e.role <> 'chain' THEN e.role WHEN w.outer_agent IS NULL AND w.local_root THEN 'workflow' ELSE 'other' END,
    CASE WHEN e.is_agent AND (w.outer_agent IS NULL OR e.start_ns > w.outer_end_ns) THEN e.span_id
         WHEN e.role = 'chain' AND w.outer_agent IS NULL THEN e.span_id
         ELSE w.outer_agent END,
    CASE WHEN e.is_agent AND (w.outer_agent IS NULL OR e.start_ns > w.outer_end_ns) THEN e.end_ns
         WHEN e.role = 'chain' AND w.outer_agent IS NULL THEN e.end_ns
         ELSE w.outer_end_ns END,
    CASE WHEN e.is_agent AND e.start_ns > w.outer_end_ns THEN w.outer_agent ELSE w.resumes END,
    CASE WHEN e.is_agent OR (e.role = 'chain' AND w.outer_agent IS NULL) THEN coalesce(e.agent, w.near_agent) ELSE w.near_agent END,
    CASE WHEN e.role NOT IN ('other', 'chain') OR (e.role = 'chain' AND w.outer_agent IS NULL) THEN e.span_id ELSE w.near_step END,
    w.near_step,
    CASE WHEN e.role = 'model' THEN e.span_id ELSE w.near_model END,
    CASE WHEN e.role = 'model' THEN e.end_ns ELSE w.near_model_end_ns END,
    -- a call that starts after the call above it has ended is the next call (a context that leaked), not a part of it
    CASE WHEN e.role = 'model' AND NOT coalesce(e.start_ns >= w.near_model_end_ns, false) THEN w.near_model END,
    CASE WHEN e.role = 'tool' THEN list_append(w.tools_down, bare_tool(e.tool)) ELSE w.tools_down END,
    e.role = 'tool' AND list_contains(w.tools_down, bare_tool(e.tool)),
    w.depth + 1
  FROM walk w
  JOIN edges e ON e.trace_id = w.trace_id AND e.parent = w.span_id
)
SELECT * FROM walk
UNION ALL
SELECT u.trace_id, u.span_id, u.span_id, false, CASE WHEN u.role = 'chain' THEN 'other' ELSE u.role END, NULL, NULL, NULL,
  u.agent, NULL, NULL, NULL, NULL, NULL, []::VARCHAR[], false, 0
FROM understood u
ANTI JOIN walk w ON w.trace_id = u.trace_id AND w.span_id = u.span_id
