-- Grain: one row per step of the traces with new spans whose tokens and cost count: a model call, or a sum that stands for
-- calls nobody told, or an embedding.
-- Inputs: new_steps.
-- What a span states of tokens repeats what the model calls below it state, whatever kind of span it is: a wrapper around
-- the one call, an agent, a workflow. So a model call counts where no model call below it states tokens, and a sum counts
-- only where no call below it states any; of sums within sums, the outermost.
WITH RECURSIVE meters AS (
  SELECT
    trace_id, span_id, parent_step_id, role, is_leaf_model,
    coalesce(input_tokens, output_tokens) IS NOT NULL AS is_metered
  FROM new_steps
  WHERE role = 'model' OR (role IN ('agent', 'workflow', 'retrieval') AND coalesce(input_tokens, output_tokens) IS NOT NULL)
),
above AS (
  SELECT trace_id, span_id, role, is_metered, parent_step_id AS above_id, false AS within_tool FROM meters WHERE parent_step_id IS NOT NULL
  UNION ALL
  SELECT a.trace_id, a.span_id, a.role, a.is_metered, s.parent_step_id, a.within_tool OR s.role IN ('tool', 'agent', 'workflow')
  FROM above a
  JOIN new_steps s ON s.trace_id = a.trace_id AND s.span_id = a.above_id
  WHERE s.parent_step_id IS NOT NULL
),
-- a call that the tools or agents below another call make is a call of its own, and repeats nothing
over_calls AS (
  SELECT DISTINCT a.trace_id, a.above_id AS span_id
  FROM above a
  JOIN meters m ON m.trace_id = a.trace_id AND m.span_id = a.above_id
  WHERE a.is_metered AND CASE m.role
    WHEN 'retrieval' THEN a.role IN ('model', 'retrieval')
    WHEN 'model' THEN a.role = 'model' AND NOT a.within_tool
    ELSE a.role = 'model'
  END
),
sums AS (
  SELECT m.trace_id, m.span_id
  FROM meters m
  ANTI JOIN over_calls o ON o.trace_id = m.trace_id AND o.span_id = m.span_id
  WHERE m.role IN ('agent', 'workflow')
),
-- calls inside a span that states their tokens for them
wrapped AS (
  SELECT DISTINCT a.trace_id, a.span_id
  FROM above a
  JOIN (
    SELECT trace_id, span_id, true AS is_call FROM meters WHERE role = 'model' AND is_metered
    UNION ALL
    SELECT trace_id, span_id, false FROM sums
  ) m ON m.trace_id = a.trace_id AND m.span_id = a.above_id
  WHERE a.role = 'model' AND NOT a.is_metered AND NOT (m.is_call AND a.within_tool)
),
inner_sums AS (
  SELECT DISTINCT a.trace_id, a.span_id
  FROM above a
  JOIN sums s ON s.trace_id = a.trace_id AND s.span_id = a.above_id
  WHERE a.role IN ('agent', 'workflow')
),
-- embeddings of work whose tokens an agent above states in one sum
embedded AS (
  SELECT DISTINCT a.trace_id, a.span_id
  FROM above a
  JOIN sums s ON s.trace_id = a.trace_id AND s.span_id = a.above_id
  WHERE a.role = 'retrieval'
),
counted AS (
  SELECT m.trace_id, m.span_id, 'call' AS counts_as
  FROM meters m
  ANTI JOIN over_calls o ON o.trace_id = m.trace_id AND o.span_id = m.span_id
  ANTI JOIN wrapped w ON w.trace_id = m.trace_id AND w.span_id = m.span_id
  ANTI JOIN embedded e ON e.trace_id = m.trace_id AND e.span_id = m.span_id
  WHERE m.role IN ('model', 'retrieval') AND (m.is_metered OR m.is_leaf_model)
  UNION ALL
  SELECT s.trace_id, s.span_id, 'sum' FROM sums s ANTI JOIN inner_sums i ON i.trace_id = s.trace_id AND i.span_id = s.span_id
)
SELECT
  c.trace_id, c.span_id, c.counts_as,
  s.provider, s.model, s.service, s.start_ns, s.input_tokens, s.output_tokens, s.cache_read_tokens, s.cache_write_tokens
FROM counted c
JOIN new_steps s USING (trace_id, span_id)
