-- one row per seven days, counted back from the last pass, the newest first; of the tasks of these filters
-- inputs: scope, waste, pipeline
-- parameters: those of scope; days must be NULL: a task belongs to the week in which it was decided
-- As in the view waste_weekly, which has no filters: a cent is in one part only, and the parts sum to the waste.
WITH decided AS (
    SELECT
        t.cost_usd, t.cost_complete, t.model_calls,
        ((epoch_us(p.as_of) - epoch_us(t.decided_at)) // (7 * 86400000000))::INTEGER AS weeks_ago
    FROM ({scope}) t, pipeline p
    -- Twelve weeks; a task of a clock that runs ahead is of a week to come.
    WHERE t.decided_at <= p.as_of AND t.decided_at > p.as_of - to_days(84)
      AND t.outcome NOT IN ('running', 'waiting_human')
      AND (t.excluded_reason IS NULL OR t.excluded_reason = 'maintenance')
),
totals AS (
    SELECT
        weeks_ago,
        count(*) AS tasks,
        count(*) FILTER (model_calls > 0 AND NOT cost_complete) AS unpriced_tasks,
        -- Where not one model call has a price, nothing is known: that is not 0.
        CASE WHEN count(cost_usd) > 0 OR sum(model_calls) = 0 THEN coalesce(sum(cost_usd::DECIMAL(38, 12)), 0) END AS cost
    FROM decided
    GROUP BY weeks_ago
),
parts AS (
    SELECT
        ((epoch_us(p.as_of) - epoch_us(w.decided_at)) // (7 * 86400000000))::INTEGER AS weeks_ago,
        coalesce(sum(w.cost_usd::DECIMAL(38, 12)), 0) AS waste,
        coalesce(sum(w.cost_usd::DECIMAL(38, 12)) FILTER (w.kind = 'duplicate'), 0) AS duplicates,
        coalesce(sum(w.cost_usd::DECIMAL(38, 12)) FILTER (w.kind = 'retry'), 0) AS retries,
        coalesce(sum(w.cost_usd::DECIMAL(38, 12)) FILTER (w.kind = 'loop'), 0) AS loops,
        coalesce(sum(w.cost_usd::DECIMAL(38, 12)) FILTER (w.kind = 'failed_task'), 0) AS failed,
        coalesce(sum(w.cost_usd::DECIMAL(38, 12)) FILTER (w.kind = 'abandoned_task'), 0) AS abandoned,
        count(DISTINCT w.task_id) AS tasks
    FROM ({scope of waste}) w, pipeline p
    WHERE w.decided_at <= p.as_of AND w.decided_at > p.as_of - to_days(84)
      AND (w.excluded_reason IS NULL OR w.excluded_reason = 'maintenance')
    GROUP BY ALL
),
weeks AS (
    SELECT
        t.weeks_ago,
        p.as_of - to_days(7 * (t.weeks_ago + 1)) AS week_start,
        p.as_of - to_days(7 * t.weeks_ago) AS week_end,
        t.tasks,
        coalesce(w.tasks, 0) AS wasteful_tasks,
        t.unpriced_tasks,
        t.cost::DOUBLE AS cost_usd,
        (t.cost - coalesce(w.waste, 0))::DOUBLE AS useful_usd,
        CASE WHEN t.cost IS NOT NULL THEN coalesce(w.waste, 0) END::DOUBLE AS waste_usd,
        CASE WHEN t.cost IS NOT NULL THEN coalesce(w.duplicates, 0) END::DOUBLE AS duplicates_usd,
        CASE WHEN t.cost IS NOT NULL THEN coalesce(w.retries, 0) END::DOUBLE AS retries_usd,
        CASE WHEN t.cost IS NOT NULL THEN coalesce(w.loops, 0) END::DOUBLE AS loops_usd,
        CASE WHEN t.cost IS NOT NULL THEN coalesce(w.failed, 0) END::DOUBLE AS failed_tasks_usd,
        CASE WHEN t.cost IS NOT NULL THEN coalesce(w.abandoned, 0) END::DOUBLE AS abandoned_tasks_usd
    FROM totals t
    CROSS JOIN pipeline p
    LEFT JOIN parts w USING (weeks_ago)
)
SELECT
    weeks_ago, week_start, week_end, tasks, wasteful_tasks, unpriced_tasks, cost_usd, useful_usd, waste_usd,
    waste_usd / nullif(cost_usd, 0) AS waste_share,
    -- Against the seven days before, if any task was decided in them.
    waste_usd - CASE WHEN lead(weeks_ago) OVER (ORDER BY weeks_ago) = weeks_ago + 1
        THEN lead(waste_usd) OVER (ORDER BY weeks_ago) END AS waste_change,
    duplicates_usd, retries_usd, loops_usd, failed_tasks_usd, abandoned_tasks_usd
FROM weeks
ORDER BY weeks_ago
