-- Grain: one row per cause of a change in cost between two sets of decided tasks; the rows sum to the whole change.
-- Inputs: tasks, task_costs.
-- Parameters: before_start, before_end, before_version, after_start, after_end, after_version (NULL: no bound).
-- The cost of a task is a product: share of its type x calls a task x share of the model x tokens a call x share that was
-- cached x price. From the state before to the state after, one factor after the other takes its later value, in the order
-- below; what the sum moves in a step is that factor's part. The last state is the later one, so nothing is left over.
-- Where one side never saw a task type or a model, the nearest figure stands in: that side's figure over all models of the
-- type (tokens) or over all types (prices), else the other side's; a model that is new is told by `model`, not by `price`.
WITH sides AS (
  SELECT 'before' AS side, $before_start::TIMESTAMP AS start, $before_end::TIMESTAMP AS stop, $before_version::VARCHAR AS version
  UNION ALL
  SELECT 'after', $after_start::TIMESTAMP, $after_end::TIMESTAMP, $after_version::VARCHAR
),
decided AS (
  SELECT s.side, t.task_id, coalesce(t.task_type, '') AS task_type, t.cost_complete
  FROM tasks t
  JOIN sides s
    ON (s.start IS NULL OR t.decided_at >= s.start) AND (s.stop IS NULL OR t.decided_at < s.stop)
    AND (s.version IS NULL OR t.app_version = s.version)
  WHERE t.outcome NOT IN ('running', 'waiting_human') AND (t.excluded_reason IS NULL OR t.excluded_reason = 'maintenance')
    AND t.model_calls > 0
),
counted AS (
  SELECT
    count(*) FILTER (WHERE side = 'before' AND cost_complete) AS before_tasks,
    count(*) FILTER (WHERE side = 'after' AND cost_complete) AS after_tasks,
    count(*) FILTER (WHERE side = 'before' AND NOT cost_complete) AS before_left_out,
    count(*) FILTER (WHERE side = 'after' AND NOT cost_complete) AS after_left_out
  FROM decided
),
used AS (
  SELECT
    d.side, d.task_type, concat_ws('/', c.provider, c.model) AS model,
    sum(c.calls)::DOUBLE AS calls,
    coalesce(sum(c.fresh_tokens), 0)::DOUBLE AS fresh,
    coalesce(sum(c.cache_read_tokens), 0)::DOUBLE AS read,
    coalesce(sum(c.cache_write_tokens), 0)::DOUBLE AS written,
    coalesce(sum(c.output_tokens), 0)::DOUBLE AS out,
    coalesce(sum(c.input_cost_usd), 0) AS fresh_usd,
    coalesce(sum(c.cache_read_cost_usd), 0) AS read_usd,
    coalesce(sum(c.cache_write_cost_usd), 0) AS written_usd,
    coalesce(sum(c.output_cost_usd), 0) AS out_usd,
    coalesce(sum(c.cost_usd), 0) AS usd
  FROM decided d
  JOIN task_costs c USING (task_id)
  WHERE d.cost_complete
  GROUP BY ALL
  HAVING sum(c.calls) > 0
),
-- the same figures of a type, of a model, and of a model within a type
rates AS (
  SELECT
    side, task_type, model, grouping(task_type) AS any_type, grouping(model) AS any_model,
    sum(calls) AS calls,
    sum(fresh + read + written) / nullif(sum(calls), 0) AS prompt,
    sum(read) / nullif(sum(fresh + read + written), 0) AS read_share,
    sum(written) / nullif(sum(fresh + read + written), 0) AS written_share,
    sum(out) / nullif(sum(calls), 0) AS answer,
    sum(fresh_usd) / nullif(sum(fresh), 0) AS fresh_price,
    sum(read_usd) / nullif(sum(read), 0) AS read_price,
    sum(written_usd) / nullif(sum(written), 0) AS written_price,
    sum(out_usd) / nullif(sum(out), 0) AS out_price,
    sum(usd - fresh_usd - read_usd - written_usd - out_usd) / nullif(sum(calls), 0) AS call_price
  FROM used
  GROUP BY GROUPING SETS ((side, task_type, model), (side, task_type), (side, model))
),
types AS (
  SELECT
    task_type,
    (count(*) FILTER (WHERE side = 'before'))::DOUBLE AS tasks0,
    (count(*) FILTER (WHERE side = 'after'))::DOUBLE AS tasks1
  FROM decided
  WHERE cost_complete
  GROUP BY task_type
),
cells AS (
  SELECT DISTINCT task_type, model FROM used
),
figures AS (
  SELECT
    t.tasks0 / n.before_tasks AS mix0,
    t.tasks1 / n.after_tasks AS mix1,
    -- a type that one side never had takes the other's figures, so all of it is in the mix
    CASE WHEN t.tasks0 > 0 THEN coalesce(bty.calls, 0) / t.tasks0 ELSE aty.calls / t.tasks1 END AS steps0,
    CASE WHEN t.tasks1 > 0 THEN coalesce(aty.calls, 0) / t.tasks1 ELSE bty.calls / t.tasks0 END AS steps1,
    CASE WHEN bty.calls > 0 THEN coalesce(b.calls, 0) / bty.calls ELSE coalesce(a.calls, 0) / aty.calls END AS model0,
    CASE WHEN aty.calls > 0 THEN coalesce(a.calls, 0) / aty.calls ELSE coalesce(b.calls, 0) / bty.calls END AS model1,
    coalesce(b.prompt, bty.prompt, a.prompt, 0) AS prompt0,
    coalesce(a.prompt, aty.prompt, b.prompt, 0) AS prompt1,
    coalesce(b.answer, bty.answer, a.answer, 0) AS answer0,
    coalesce(a.answer, aty.answer, b.answer, 0) AS answer1,
    coalesce(b.read_share, bty.read_share, a.read_share, 0) AS read0,
    coalesce(a.read_share, aty.read_share, b.read_share, 0) AS read1,
    coalesce(b.written_share, bty.written_share, a.written_share, 0) AS written0,
    coalesce(a.written_share, aty.written_share, b.written_share, 0) AS written1,
    coalesce(b.fresh_price, bm.fresh_price, a.fresh_price, am.fresh_price, 0) AS fresh_price0,
    coalesce(a.fresh_price, am.fresh_price, b.fresh_price, bm.fresh_price, 0) AS fresh_price1,
    coalesce(b.read_price, bm.read_price, a.read_price, am.read_price, 0) AS read_price0,
    coalesce(a.read_price, am.read_price, b.read_price, bm.read_price, 0) AS read_price1,
    coalesce(b.written_price, bm.written_price, a.written_price, am.written_price, 0) AS written_price0,
    coalesce(a.written_price, am.written_price, b.written_price, bm.written_price, 0) AS written_price1,
    coalesce(b.out_price, bm.out_price, a.out_price, am.out_price, 0) AS out_price0,
    coalesce(a.out_price, am.out_price, b.out_price, bm.out_price, 0) AS out_price1,
    coalesce(b.call_price, bm.call_price, a.call_price, am.call_price, 0) AS call_price0,
    coalesce(a.call_price, am.call_price, b.call_price, bm.call_price, 0) AS call_price1
  FROM cells c
  CROSS JOIN counted n
  JOIN types t USING (task_type)
  LEFT JOIN rates b ON b.side = 'before' AND b.task_type = c.task_type AND b.model = c.model AND b.any_type = 0 AND b.any_model = 0
  LEFT JOIN rates a ON a.side = 'after' AND a.task_type = c.task_type AND a.model = c.model AND a.any_type = 0 AND a.any_model = 0
  LEFT JOIN rates bty ON bty.side = 'before' AND bty.task_type = c.task_type AND bty.any_model = 1
  LEFT JOIN rates aty ON aty.side = 'after' AND aty.task_type = c.task_type AND aty.any_model = 1
  LEFT JOIN rates bm ON bm.side = 'before' AND bm.model = c.model AND bm.any_type = 1
  LEFT JOIN rates am ON am.side = 'after' AND am.model = c.model AND am.any_type = 1
),
-- USD a task, one factor after the other at its later value
states AS (
  SELECT
    sum(mix0 * steps0 * model0 * (prompt0 * ((1 - read0 - written0) * fresh_price0 + read0 * read_price0 + written0 * written_price0) + answer0 * out_price0 + call_price0)) AS c0,
    sum(mix1 * steps0 * model0 * (prompt0 * ((1 - read0 - written0) * fresh_price0 + read0 * read_price0 + written0 * written_price0) + answer0 * out_price0 + call_price0)) AS c1,
    sum(mix1 * steps1 * model0 * (prompt0 * ((1 - read0 - written0) * fresh_price0 + read0 * read_price0 + written0 * written_price0) + answer0 * out_price0 + call_price0)) AS c2,
    sum(mix1 * steps1 * model1 * (prompt0 * ((1 - read0 - written0) * fresh_price0 + read0 * read_price0 + written0 * written_price0) + answer0 * out_price0 + call_price0)) AS c3,
    sum(mix1 * steps1 * model1 * (prompt1 * ((1 - read0 - written0) * fresh_price0 + read0 * read_price0 + written0 * written_price0) + answer0 * out_price0 + call_price0)) AS c4,
    sum(mix1 * steps1 * model1 * (prompt1 * ((1 - read0 - written0) * fresh_price0 + read0 * read_price0 + written0 * written_price0) + answer1 * out_price0 + call_price0)) AS c5,
    sum(mix1 * steps1 * model1 * (prompt1 * ((1 - read1 - written1) * fresh_price0 + read1 * read_price0 + written1 * written_price0) + answer1 * out_price0 + call_price0)) AS c6,
    sum(mix1 * steps1 * model1 * (prompt1 * ((1 - read1 - written1) * fresh_price1 + read1 * read_price1 + written1 * written_price1) + answer1 * out_price1 + call_price1)) AS c7
  FROM figures
),
totals AS (
  SELECT
    coalesce(sum(usd) FILTER (WHERE side = 'before'), 0) AS before_usd,
    coalesce(sum(usd) FILTER (WHERE side = 'after'), 0) AS after_usd
  FROM used
),
causes AS (
  SELECT 1 AS position, 'tasks' AS cause, 0.0 AS per_task_usd, (n.after_tasks - n.before_tasks) * s.c0 AS usd FROM states s, counted n
  UNION ALL SELECT 2, 'mix', s.c1 - s.c0, (s.c1 - s.c0) * n.after_tasks FROM states s, counted n
  UNION ALL SELECT 3, 'steps', s.c2 - s.c1, (s.c2 - s.c1) * n.after_tasks FROM states s, counted n
  UNION ALL SELECT 4, 'model', s.c3 - s.c2, (s.c3 - s.c2) * n.after_tasks FROM states s, counted n
  UNION ALL SELECT 5, 'prompts', s.c4 - s.c3, (s.c4 - s.c3) * n.after_tasks FROM states s, counted n
  UNION ALL SELECT 6, 'answers', s.c5 - s.c4, (s.c5 - s.c4) * n.after_tasks FROM states s, counted n
  UNION ALL SELECT 7, 'cache', s.c6 - s.c5, (s.c6 - s.c5) * n.after_tasks FROM states s, counted n
  UNION ALL SELECT 8, 'price', s.c7 - s.c6, (s.c7 - s.c6) * n.after_tasks FROM states s, counted n
)
SELECT
  c.position, c.cause, c.per_task_usd, c.usd,
  c.per_task_usd / nullif(abs(t.after_usd / n.after_tasks - t.before_usd / n.before_tasks), 0) AS per_task_share,
  n.*, t.*
FROM causes c, counted n, totals t
ORDER BY c.position
