-- Grain: one row per (trace_id, span_id) of every touched trace: a step with its cost and its run.
-- Inputs: new_steps, kept_steps (rows of work.steps for touched traces without new spans), model_prices.
-- Cost of one model call: the disjoint parts of its tokens times their prices. Input tokens include cached ones in
-- every GenAI emitter, so the cached parts are taken out first. No price means no cost, never zero.
WITH costed AS (
  SELECT
    s.* EXCLUDE (run_root),
    s.trace_id || '/' || s.run_root AS run_id,
    p.input IS NOT NULL AS priced,
    CASE WHEN s.is_leaf_model AND s.input_tokens IS NOT NULL AND p.input IS NOT NULL THEN
      (
        greatest(s.input_tokens - coalesce(s.cache_read_tokens, 0) - coalesce(s.cache_write_tokens, 0), 0) * p.input
        + coalesce(s.cache_read_tokens, 0) * coalesce(p.cache_read, p.input)
        + coalesce(s.cache_write_tokens, 0) * coalesce(p.cache_write, p.input)
        + coalesce(s.output_tokens, 0) * p.output
      ) / 1e6
    END AS computed_cost_usd
  FROM new_steps s
  LEFT JOIN model_prices p
    ON p.model = s.model AND p.provider = coalesce(s.provider, '')
    AND (p.valid_from IS NULL OR make_timestamp(s.start_ns // 1000) >= p.valid_from)
    AND (p.valid_to IS NULL OR make_timestamp(s.start_ns // 1000) < p.valid_to)
)
SELECT * EXCLUDE (priced), coalesce(computed_cost_usd, CASE WHEN is_leaf_model THEN stated_cost_usd END) AS cost_usd
FROM costed
UNION ALL BY NAME
SELECT * FROM kept_steps
