-- one row: what unreliability cost in the last seven days, beside the seven before
-- inputs: waste_weekly
-- remembered: until the next pass
SELECT
    waste_usd, cost_usd, tasks, wasteful_tasks, unpriced_tasks,
    waste_usd / nullif(cost_usd, 0) AS waste_share,
    waste_usd - (SELECT waste_usd FROM waste_weekly WHERE weeks_ago = 1) AS waste_change,
    duplicates_usd, retries_usd, loops_usd, failed_tasks_usd, abandoned_tasks_usd
FROM waste_weekly
WHERE weeks_ago = 0
