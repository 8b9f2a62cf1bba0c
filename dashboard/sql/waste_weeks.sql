-- one row per seven days, counted back from the last pass, the newest first; of the tasks of these filters
-- inputs: scope, waste, pipeline
-- parameters: those of scope; days must be NULL: a task belongs to the week in which it was decided
WITH weeks AS (
{view waste_weekly}
)
SELECT
    weeks_ago, week_start, week_end, tasks, wasteful_tasks, unpriced_tasks, cost_usd, useful_usd, waste_usd,
    waste_usd / nullif(cost_usd, 0) AS waste_share,
    -- Against the seven days before, if any task was decided in them.
    waste_usd - CASE WHEN lead(weeks_ago) OVER (ORDER BY weeks_ago) = weeks_ago + 1
        THEN lead(waste_usd) OVER (ORDER BY weeks_ago) END AS waste_change,
    duplicates_usd, retries_usd, loops_usd, failed_tasks_usd, abandoned_tasks_usd
FROM weeks
-- A task of a clock that runs ahead is of a week to come.
WHERE weeks_ago BETWEEN 0 AND 11
ORDER BY weeks_ago
