-- Grain: one row per seven days, counted back from the last pass; `weeks_ago` 0 is the last seven days.
-- Inputs: core.waste, core.tasks, core.pipeline.
-- What unreliability cost in model calls, and its parts: a cent is in one part only, and useful_usd + waste_usd = cost_usd.
-- A task belongs to the week in which it was decided. Environments that no objective counts are left out.
WITH decided AS (
  SELECT t.cost_usd, t.cost_complete, t.model_calls, ((epoch_us(p.as_of) - epoch_us(t.decided_at)) // (7 * 86400000000))::INTEGER AS weeks_ago
  FROM core.tasks t, core.pipeline p
  WHERE t.decided_at <= p.as_of AND t.outcome NOT IN ('running', 'waiting_human')
    AND (t.excluded_reason IS NULL OR t.excluded_reason = 'maintenance')
),
totals AS (
  SELECT
    weeks_ago,
    count(*) AS tasks,
    count(*) FILTER (WHERE model_calls > 0 AND NOT cost_complete) AS unpriced_tasks,
    -- where not one model call has a price, nothing is known: that is not 0
    CASE WHEN count(cost_usd) > 0 OR sum(model_calls) = 0 THEN coalesce(sum(cost_usd::DECIMAL(38, 12)), 0) END AS cost
  FROM decided
  GROUP BY weeks_ago
),
wasted AS (
  SELECT w.task_id, w.kind, w.cost_usd, ((epoch_us(p.as_of) - epoch_us(w.decided_at)) // (7 * 86400000000))::INTEGER AS weeks_ago
  FROM core.waste w, core.pipeline p
  WHERE w.decided_at <= p.as_of AND (w.excluded_reason IS NULL OR w.excluded_reason = 'maintenance')
),
parts AS (
  SELECT
    weeks_ago,
    coalesce(sum(w.cost_usd::DECIMAL(38, 12)), 0) AS waste,
    coalesce(sum(w.cost_usd::DECIMAL(38, 12)) FILTER (WHERE w.kind = 'duplicate'), 0) AS duplicates,
    coalesce(sum(w.cost_usd::DECIMAL(38, 12)) FILTER (WHERE w.kind = 'retry'), 0) AS retries,
    coalesce(sum(w.cost_usd::DECIMAL(38, 12)) FILTER (WHERE w.kind = 'loop'), 0) AS loops,
    coalesce(sum(w.cost_usd::DECIMAL(38, 12)) FILTER (WHERE w.kind = 'failed_task'), 0) AS failed,
    coalesce(sum(w.cost_usd::DECIMAL(38, 12)) FILTER (WHERE w.kind = 'abandoned_task'), 0) AS abandoned,
    count(DISTINCT w.task_id) AS tasks
  FROM wasted w
  GROUP BY weeks_ago
)
SELECT
  t.weeks_ago,
  p.as_of - to_days(7 * (t.weeks_ago + 1)) AS week_start,
  p.as_of - to_days(7 * t.weeks_ago) AS week_end,
  t.tasks,
  coalesce(w.tasks, 0) AS wasteful_tasks,
  t.unpriced_tasks,
  t.cost::DOUBLE AS cost_usd,
  CASE WHEN t.cost IS NOT NULL THEN coalesce(w.waste, 0) END::DOUBLE AS waste_usd,
  (t.cost - coalesce(w.waste, 0))::DOUBLE AS useful_usd,
  CASE WHEN t.cost IS NOT NULL THEN coalesce(w.duplicates, 0) END::DOUBLE AS duplicates_usd,
  CASE WHEN t.cost IS NOT NULL THEN coalesce(w.retries, 0) END::DOUBLE AS retries_usd,
  CASE WHEN t.cost IS NOT NULL THEN coalesce(w.loops, 0) END::DOUBLE AS loops_usd,
  CASE WHEN t.cost IS NOT NULL THEN coalesce(w.failed, 0) END::DOUBLE AS failed_tasks_usd,
  CASE WHEN t.cost IS NOT NULL THEN coalesce(w.abandoned, 0) END::DOUBLE AS abandoned_tasks_usd
FROM totals t
CROSS JOIN core.pipeline p
LEFT JOIN parts w USING (weeks_ago)
