-- Grain: one row per loop: a task that went round without anything new.
-- Inputs: tool_calls, run_facts, task_runs, detector_limits.
-- Only calls whose result or error is known can show that nothing changed. Tries of one call (attempt 2, 3, ...) and calls
-- that run side by side are no rounds. A streak of stale calls ends with the first call that brings something new: polling
-- that moves, pages that follow each other and a look before each of several writes are no loops.
WITH calls AS (
  SELECT
    c.task_id, c.intent, c.name, c.span_id, c.start_ns, md5(concat_ws('|', c.name, c.same)) AS asks,
    md5(concat_ws('|', c.name, c.same, c.outcome, c.said)) AS sign,
    c.start_ns >= coalesce(max(c.last_ns) OVER (PARTITION BY c.task_id, c.intent ORDER BY c.start_ns, c.span_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS in_turn
  FROM tool_calls c
  WHERE c.role = 'tool' AND c.told AND c.arguments IS NOT NULL AND coalesce(c.attempt_no, 1) = 1
),
seen AS (
  SELECT
    *,
    in_turn AND row_number() OVER (PARTITION BY task_id, intent, sign ORDER BY start_ns, span_id) > 1 AS stale
  FROM calls
),
streaks AS (
  SELECT
    *,
    sum(CASE WHEN stale THEN 0 ELSE 1 END) OVER (PARTITION BY task_id, intent ORDER BY start_ns, span_id) AS streak
  FROM seen
),
turns AS (
  SELECT *, row_number() OVER (PARTITION BY task_id, intent, streak ORDER BY start_ns, span_id) AS turn
  FROM streaks
  WHERE stale
),
-- how many turns in a row repeat the one `period` turns before
rounds AS (
  SELECT
    t.task_id, t.intent, t.streak, p.period,
    count(*) FILTER (WHERE t.turn <= p.period OR t.sign = b.sign) AS turns,
    count(DISTINCT t.sign) AS signs,
    list(t.span_id ORDER BY t.turn) AS span_ids,
    string_agg(DISTINCT t.name, ', ' ORDER BY t.name) AS tools,
    max(t.start_ns) AS last_ns,
    any_value(t.asks) AS asks, any_value(t.sign) AS sign
  FROM turns t
  CROSS JOIN (SELECT unnest(generate_series(1, (SELECT longest_period FROM detector_limits))) AS period) p
  LEFT JOIN turns b ON b.task_id = t.task_id AND b.intent = t.intent AND b.streak = t.streak AND b.turn = t.turn - p.period
  GROUP BY ALL
),
found AS (
  SELECT task_id, intent, streak, period, span_ids, tools, turns, 'loop.equal_calls' AS rule
  FROM rounds r, detector_limits d
  WHERE period = 1 AND signs = 1 AND turns + 1 >= d.equal_calls
    -- the same question had another answer in the end: it was worth waiting
    AND NOT EXISTS (
      SELECT 1 FROM calls c
      WHERE c.task_id = r.task_id AND c.intent = r.intent AND c.asks = r.asks AND c.sign <> r.sign AND c.start_ns > r.last_ns)
  UNION ALL
  SELECT task_id, intent, streak, period, span_ids, tools, turns, 'loop.cycle'
  FROM rounds, detector_limits d
  WHERE period > 1 AND signs = period AND turns >= period * (d.rounds - 1)
)
SELECT
  task_id,
  task_id || '/' || intent || '/' || streak AS subject,
  rule,
  tools || ': ' || CASE rule WHEN 'loop.equal_calls' THEN (turns + 1)::VARCHAR || ' equal calls with equal results'
    ELSE (turns // period + 1)::VARCHAR || ' rounds of ' || period || ' calls without a new result' END AS detail,
  span_ids AS evidence
FROM found
QUALIFY row_number() OVER (PARTITION BY task_id, intent, streak ORDER BY period) = 1
UNION ALL
SELECT t.task_id, r.run_id, 'loop.limit_hit', 'stopped by its limit of steps: ' || r.root_error_class, [r.root_span_id]
FROM run_facts r
JOIN task_runs t USING (run_id)
WHERE r.root_error AND says_step_limit(r.root_error_class)
