-- Grain: one row per step of a task whose tokens count, with its own tokens and cost.
-- Inputs: run_steps, task_runs.
-- Two faults of senders are taken out here, because they show only beside other spans:
--   a call told by two instrumentations stands there twice, side by side, with the same tokens, one within the time of the
--   other: the outer of them counts;
--   an agent that states the sum of its whole session on every run (at least three runs, every sum larger than the one
--   before in input and output): its own part is what was added.
WITH counting AS (
  SELECT
    t.task_id, s.run_id, s.trace_id, s.span_id, s.counts_as, s.conversation_id, s.agent, s.service, s.scope, s.provider, s.model,
    s.status, s.start_ns, coalesce(s.end_ns, s.start_ns) AS last_ns,
    s.input_tokens, s.output_tokens, s.cache_read_tokens, s.cache_write_tokens, s.reasoning_tokens,
    s.input_cost_usd, s.cache_read_cost_usd, s.cache_write_cost_usd, s.output_cost_usd, s.request_cost_usd,
    s.computed_cost_usd, s.stated_cost_usd, s.cost_usd
  FROM run_steps s
  JOIN task_runs t USING (run_id)
  WHERE s.counts_as IS NOT NULL
),
told_twice AS (
  SELECT DISTINCT x.trace_id, x.span_id
  FROM counting x
  JOIN counting y
    ON y.trace_id = x.trace_id AND y.input_tokens = x.input_tokens AND y.output_tokens = x.output_tokens
    AND y.scope <> x.scope AND y.start_ns <= x.start_ns AND y.last_ns >= x.last_ns
    AND (y.start_ns < x.start_ns OR y.last_ns > x.last_ns OR y.span_id < x.span_id)
  WHERE x.counts_as = 'call' AND y.counts_as = 'call'
),
once AS (
  SELECT c.* FROM counting c ANTI JOIN told_twice d ON d.trace_id = c.trace_id AND d.span_id = c.span_id
),
sums AS (
  SELECT
    trace_id, span_id, conversation_id, agent, service, start_ns, input_tokens, output_tokens,
    lag(input_tokens) OVER session AS input_before,
    lag(output_tokens) OVER session AS output_before,
    lag(span_id) OVER session AS span_before,
    lag(trace_id) OVER session AS trace_before
  FROM once
  WHERE counts_as = 'sum' AND conversation_id IS NOT NULL
  WINDOW session AS (PARTITION BY conversation_id, coalesce(agent, ''), coalesce(service, '') ORDER BY start_ns, span_id)
),
grown AS (
  SELECT
    *,
    count(*) OVER session AS n,
    bool_and(coalesce(input_tokens > input_before AND output_tokens > output_before, span_before IS NULL)) OVER session AS grows
  FROM sums
  WINDOW session AS (PARTITION BY conversation_id, coalesce(agent, ''), coalesce(service, ''))
),
added AS (
  SELECT trace_id, span_id, trace_before, span_before FROM grown WHERE grows AND n >= 3 AND span_before IS NOT NULL
)
SELECT
  o.* EXCLUDE (conversation_id, scope, last_ns, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens,
    input_cost_usd, cache_read_cost_usd, cache_write_cost_usd, output_cost_usd, request_cost_usd,
    computed_cost_usd, stated_cost_usd, cost_usd),
  CASE WHEN a.span_id IS NULL THEN o.input_tokens ELSE o.input_tokens - b.input_tokens END AS input_tokens,
  CASE WHEN a.span_id IS NULL THEN o.output_tokens ELSE o.output_tokens - b.output_tokens END AS output_tokens,
  CASE WHEN a.span_id IS NULL THEN o.cache_read_tokens ELSE o.cache_read_tokens - b.cache_read_tokens END AS cache_read_tokens,
  CASE WHEN a.span_id IS NULL THEN o.cache_write_tokens ELSE o.cache_write_tokens - b.cache_write_tokens END AS cache_write_tokens,
  CASE WHEN a.span_id IS NULL THEN o.reasoning_tokens ELSE o.reasoning_tokens - b.reasoning_tokens END AS reasoning_tokens,
  CASE WHEN a.span_id IS NULL THEN o.input_cost_usd ELSE o.input_cost_usd - b.input_cost_usd END AS input_cost_usd,
  CASE WHEN a.span_id IS NULL THEN o.cache_read_cost_usd ELSE o.cache_read_cost_usd - b.cache_read_cost_usd END AS cache_read_cost_usd,
  CASE WHEN a.span_id IS NULL THEN o.cache_write_cost_usd ELSE o.cache_write_cost_usd - b.cache_write_cost_usd END AS cache_write_cost_usd,
  CASE WHEN a.span_id IS NULL THEN o.output_cost_usd ELSE o.output_cost_usd - b.output_cost_usd END AS output_cost_usd,
  CASE WHEN a.span_id IS NULL THEN o.request_cost_usd ELSE o.request_cost_usd - b.request_cost_usd END AS request_cost_usd,
  CASE WHEN a.span_id IS NULL THEN o.computed_cost_usd ELSE o.computed_cost_usd - b.computed_cost_usd END AS computed_cost_usd,
  CASE WHEN a.span_id IS NULL THEN o.stated_cost_usd ELSE o.stated_cost_usd - b.stated_cost_usd END AS stated_cost_usd,
  CASE WHEN a.span_id IS NULL THEN o.cost_usd ELSE o.cost_usd - b.cost_usd END AS cost_usd
FROM once o
LEFT JOIN added a ON a.trace_id = o.trace_id AND a.span_id = o.span_id
LEFT JOIN once b ON b.trace_id = a.trace_before AND b.span_id = a.span_before
