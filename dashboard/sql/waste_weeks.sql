-- one row per seven days, counted back from the last pass, the newest first
-- inputs: waste_weekly
-- remembered: until the next pass
SELECT
    weeks_ago, week_start, week_end, tasks, wasteful_tasks, unpriced_tasks, cost_usd, useful_usd, waste_usd,
    waste_usd / nullif(cost_usd, 0) AS waste_share,
    waste_usd - lead(waste_usd) OVER (ORDER BY weeks_ago) AS waste_change,
    duplicates_usd, retries_usd, loops_usd, failed_tasks_usd, abandoned_tasks_usd
FROM waste_weekly
-- A task of a clock that runs ahead is of a week to come.
WHERE weeks_ago BETWEEN 0 AND 11
ORDER BY weeks_ago
