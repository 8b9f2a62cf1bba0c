-- Grain: one row per (trace_id, span_id) of every touched trace: a step with its cost and its run.
-- Inputs: new_steps, metered, call_costs, kept_steps (rows of work.steps for touched traces without new spans).
-- What we compute stands before what the emitter states: a stated sum may be of another price list.
SELECT
  s.* EXCLUDE (run_root),
  s.trace_id || '/' || s.run_root AS run_id,
  m.counts_as,
  c.* EXCLUDE (trace_id, span_id),
  coalesce(c.computed_cost_usd, CASE WHEN m.counts_as IS NOT NULL THEN s.stated_cost_usd END) AS cost_usd
FROM new_steps s
LEFT JOIN metered m USING (trace_id, span_id)
LEFT JOIN call_costs c USING (trace_id, span_id)
UNION ALL BY NAME
SELECT * FROM kept_steps
