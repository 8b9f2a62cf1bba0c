-- Grain: one row per (trace_id, span_id) of the traces with new spans: a step and the run it belongs to.
-- Inputs: understood, tree, finish_classes.
-- Function: read_messages. A chat's history grows with every call, so what was said is read once a run, from its first
-- model call and its agents; of later calls only the answer is read. In a trace without any tool step the last call's
-- history is read as well: it alone shows what the tools answered (see witnessed.sql).
-- A run is the outermost agent or workflow span with what is below it; under a plain local root without an agent it is
-- that root; what hangs under a parent that never arrived is one rootless fragment per trace.
-- Places are worked out on narrow rows; the wide ones, with their messages, are joined once, at the end.
WITH placed AS (
  SELECT
    u.trace_id, u.span_id, u.start_ns, u.end_ns, u.mark, u.operation,
    t.role,
    coalesce(u.agent, t.near_agent) AS agent,
    t.top, t.local_root, t.outer_agent, t.resumes, t.parent_step, t.same_tool_above, t.depth,
    -- an index that is filled is no work that anyone asked an agent for
    (t.role IN ('agent', 'workflow', 'model', 'tool') AND coalesce(u.operation, '') <> 'embeddings') OR u.mark IN ('start_marker', 'accepted') AS is_work
  FROM understood u
  JOIN tree t USING (trace_id, span_id)
),
tops AS (
  SELECT
    trace_id, top,
    arg_min(outer_agent, (start_ns, span_id)) FILTER (WHERE outer_agent = span_id) AS first_agent,
    bool_or(is_work) AS has_work
  FROM placed
  WHERE local_root
  GROUP BY trace_id, top
),
rooted_runs AS (
  SELECT trace_id, span_id AS outer_agent, start_ns, end_ns
  FROM placed
  WHERE local_root AND outer_agent = span_id AND end_ns IS NOT NULL
),
-- an orphan inside the time of an agent run of its trace lost only a span in between, not its root
adopted AS (
  SELECT p.trace_id, p.span_id AS top, arg_max(r.outer_agent, (r.start_ns, r.outer_agent)) AS outer_agent
  FROM placed p
  JOIN rooted_runs r ON r.trace_id = p.trace_id AND p.start_ns BETWEEN r.start_ns AND r.end_ns
  WHERE p.span_id = p.top AND NOT p.local_root
  GROUP BY p.trace_id, p.span_id
),
fragments AS (
  SELECT p.trace_id
  FROM placed p
  ANTI JOIN adopted a ON a.trace_id = p.trace_id AND a.top = p.top
  WHERE NOT p.local_root AND p.is_work
  GROUP BY p.trace_id
),
parents AS (
  SELECT DISTINCT trace_id, model_above AS span_id FROM tree WHERE model_above IS NOT NULL
),
assigned AS (
  SELECT
    p.trace_id, p.span_id, p.start_ns, p.operation, p.role, p.agent, p.resumes, p.same_tool_above, p.depth,
    p.parent_step AS parent_step_id,
    CASE
      WHEN p.mark = 'build' THEN NULL
      WHEN p.local_root AND p.outer_agent IS NOT NULL THEN p.outer_agent
      WHEN p.local_root AND o.first_agent IS NOT NULL THEN o.first_agent
      WHEN p.local_root AND o.has_work THEN p.top
      WHEN NOT p.local_root AND a.outer_agent IS NOT NULL THEN a.outer_agent
      WHEN NOT p.local_root AND f.trace_id IS NOT NULL THEN 'fragment'
    END AS run_root,
    p.role = 'model' AND m.span_id IS NULL AS is_leaf_model
  FROM placed p
  LEFT JOIN tops o ON o.trace_id = p.trace_id AND o.top = p.top
  LEFT JOIN adopted a ON a.trace_id = p.trace_id AND a.top = p.top
  LEFT JOIN fragments f ON f.trace_id = p.trace_id
  LEFT JOIN parents m ON m.trace_id = p.trace_id AND m.span_id = p.span_id
),
ordered AS (
  SELECT
    * EXCLUDE (start_ns, operation),
    is_leaf_model AND coalesce(operation, '') <> 'embeddings' AS is_model_call,
    is_leaf_model AND row_number() OVER (PARTITION BY trace_id, run_root, is_leaf_model ORDER BY start_ns, span_id) = 1 AS is_first_model,
    is_leaf_model AND no_tool_steps
      AND row_number() OVER (PARTITION BY trace_id, run_root, is_leaf_model ORDER BY start_ns DESC, span_id DESC) = 1 AS is_only_witness
  FROM (SELECT *, NOT bool_or(role = 'tool') OVER (PARTITION BY trace_id) AS no_tool_steps FROM assigned)
),
told AS (
  SELECT
    u.* EXCLUDE (agent, role, input_messages, output_messages, output, tool_calls, attributes, events),
    o.* EXCLUDE (trace_id, span_id, is_first_model, is_only_witness),
    CASE WHEN o.role IN ('model', 'agent', 'workflow') THEN
      read_messages(
        o.is_first_model OR o.is_only_witness OR o.role <> 'model',
        CASE WHEN o.is_first_model OR o.is_only_witness OR o.role <> 'model' THEN u.input_messages END,
        u.output_messages, u.output, u.tool_calls,
        CASE WHEN contains(u.attributes, '.message.') OR contains(u.attributes, 'gen_ai.prompt.') OR contains(u.attributes, 'gen_ai.completion.') THEN u.attributes END,
        CASE WHEN u.input_messages IS NULL AND u.output_messages IS NULL AND contains(u.events, 'gen_ai.') THEN u.events END)
    END AS said,
    u.output_messages IS NOT NULL AS answer_captured
  FROM ordered o
  JOIN understood u USING (trace_id, span_id)
),
finished AS (
  SELECT *, regexp_extract(coalesce(finish_stated, said.finish), '[A-Za-z_-]+') AS finish_word FROM told
)
SELECT
  * EXCLUDE (said, finish_stated, finish_word, answer_captured, no_tool_steps),
  nullif(finish_word, '') AS finish_reason,
  (SELECT c.class FROM finish_classes c WHERE c.word = lower(finish_word)) AS finish_class,
  said.user_text AS user_text,
  said.output_text AS output_text,
  -- its answer was captured, and holds no word and no call
  answer_captured AND said.output_text IS NULL AND len(said.requested) = 0 AND len(said.deferred) = 0 AS said_nothing,
  coalesce(said.requested, []) AS requested,
  coalesce(said.deferred, []) AS deferred,
  CASE WHEN no_tool_steps OR role IN ('agent', 'workflow') THEN list_concat(said.answered, said.returned) ELSE coalesce(said.answered, []) END AS answered,
  coalesce(said.approvals, []) AS approvals
FROM finished
