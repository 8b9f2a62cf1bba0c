-- Grain: one row per step with tokens that count and a price: what it cost, by kind of token.
-- Inputs: metered, model_prices.
-- The disjoint parts of its tokens times their prices. Input tokens include cached ones in every GenAI emitter, so cached
-- parts are taken out first, as far as they have a price of their own. A price can depend on the hour of the day and on
-- the length of the prompt (`tiers`); the last threshold passed decides. No price means no cost, never zero.
-- A sum over many calls cannot know which threshold each call passed, so under such a price it has no cost.
WITH calls AS (
  SELECT
    s.trace_id, s.span_id, s.input_tokens,
    coalesce(s.output_tokens, 0) AS output_tokens,
    coalesce(s.cache_read_tokens, 0) AS read_tokens,
    coalesce(s.cache_write_tokens, 0) AS written_tokens,
    strftime(make_timestamp(s.start_ns // 1000), '%H:%M') AS clock,
    p.* EXCLUDE (provider, model, service, valid_from, valid_to, source)
  FROM metered s
  JOIN model_prices p
    ON p.model = s.model AND p.provider = coalesce(s.provider, '') AND p.input IS NOT NULL
    AND (p.service IS NULL OR p.service = coalesce(s.service, ''))
    AND (p.valid_from IS NULL OR make_timestamp(s.start_ns // 1000) >= p.valid_from)
    AND (p.valid_to IS NULL OR make_timestamp(s.start_ns // 1000) < p.valid_to)
  WHERE s.input_tokens IS NOT NULL AND (s.counts_as = 'call' OR p.tiers IS NULL)
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
),
charged AS (
  SELECT
    *,
    greatest(input_tokens
      - CASE WHEN read_rate IS NULL THEN 0 ELSE read_tokens END
      - CASE WHEN written_rate IS NULL THEN 0 ELSE written_tokens END, 0) AS at_input_rate
  FROM rated
),
-- cached tokens without a price of their own cost what input costs; their share is told apart all the same
split AS (
  SELECT *, CASE WHEN read_rate IS NULL THEN least(read_tokens, at_input_rate) ELSE 0 END AS read_as_input
  FROM charged
),
parts AS (
  SELECT *, CASE WHEN written_rate IS NULL THEN least(written_tokens, at_input_rate - read_as_input) ELSE 0 END AS written_as_input
  FROM split
),
costs AS (
  SELECT
    trace_id, span_id,
    (at_input_rate - read_as_input - written_as_input) * input_rate / 1e6 AS input_cost_usd,
    CASE WHEN read_rate IS NULL THEN read_as_input * input_rate ELSE read_tokens * read_rate END / 1e6 AS cache_read_cost_usd,
    CASE WHEN written_rate IS NULL THEN written_as_input * input_rate ELSE written_tokens * written_rate END / 1e6 AS cache_write_cost_usd,
    CASE WHEN output_tokens = 0 THEN 0 ELSE output_tokens * output_rate END / 1e6 AS output_cost_usd,
    coalesce(CAST(tiers ->> 'per_request' AS DOUBLE), 0) AS request_cost_usd
  FROM parts
)
SELECT
  *,
  input_cost_usd + cache_read_cost_usd + cache_write_cost_usd + output_cost_usd + request_cost_usd AS computed_cost_usd
FROM costs
