-- Grain: one row per leaf model call with a price: what it cost.
-- Inputs: new_steps, model_prices.
-- The disjoint parts of its tokens times their prices. Input tokens include cached ones in every GenAI emitter, so cached
-- parts are taken out first, as far as they have a price of their own. A price can depend on the hour of the day and on
-- the length of the prompt (`tiers`); the last threshold passed decides. No price means no cost, never zero.
WITH calls AS (
  SELECT
    s.trace_id, s.span_id, s.input_tokens,
    coalesce(s.output_tokens, 0) AS output_tokens,
    coalesce(s.cache_read_tokens, 0) AS read_tokens,
    coalesce(s.cache_write_tokens, 0) AS written_tokens,
    strftime(make_timestamp(s.start_ns // 1000), '%H:%M') AS clock,
    p.* EXCLUDE (provider, model, valid_from, valid_to, source)
  FROM new_steps s
  JOIN model_prices p
    ON p.model = s.model AND p.provider = coalesce(s.provider, '') AND p.input IS NOT NULL
    AND (p.valid_from IS NULL OR make_timestamp(s.start_ns // 1000) >= p.valid_from)
    AND (p.valid_to IS NULL OR make_timestamp(s.start_ns // 1000) < p.valid_to)
  WHERE s.is_leaf_model AND s.input_tokens IS NOT NULL
),
timed AS (
  SELECT
    *,
    list_filter(CAST(tiers -> 'hours' AS JSON[]), lambda h:
      CASE WHEN h ->> 'to' < h ->> 'from' THEN clock >= h ->> 'from' OR clock < h ->> 'to'
        ELSE clock >= h ->> 'from' AND clock < h ->> 'to' END)[1] AS hour
  FROM calls
),
chosen AS (
  SELECT
    *,
    coalesce(
      list_filter(CAST(CASE WHEN hour IS NULL THEN tiers -> 'tiers' ELSE hour -> 'tiers' END AS JSON[]),
        lambda t: CAST(t ->> 'over' AS BIGINT) < input_tokens)[-1],
      hour) AS rates
  FROM timed
),
rated AS (
  SELECT
    *,
    CASE WHEN rates IS NULL THEN input ELSE CAST(rates ->> 'input' AS DOUBLE) END AS input_rate,
    CASE WHEN rates IS NULL THEN output ELSE CAST(rates ->> 'output' AS DOUBLE) END AS output_rate,
    CASE WHEN rates IS NULL THEN cache_read ELSE CAST(rates ->> 'cache_read' AS DOUBLE) END AS read_rate,
    CASE WHEN rates IS NULL THEN cache_write ELSE CAST(rates ->> 'cache_write' AS DOUBLE) END AS written_rate
  FROM chosen
)
SELECT
  trace_id, span_id,
  (
    greatest(input_tokens
      - CASE WHEN read_rate IS NULL THEN 0 ELSE read_tokens END
      - CASE WHEN written_rate IS NULL THEN 0 ELSE written_tokens END, 0) * input_rate
    + CASE WHEN read_rate IS NULL THEN 0 ELSE read_tokens * read_rate END
    + CASE WHEN written_rate IS NULL THEN 0 ELSE written_tokens * written_rate END
    + CASE WHEN output_tokens = 0 THEN 0 ELSE output_tokens * output_rate END
  ) / 1e6 + coalesce(CAST(tiers ->> 'per_request' AS DOUBLE), 0) AS computed_cost_usd
FROM rated
