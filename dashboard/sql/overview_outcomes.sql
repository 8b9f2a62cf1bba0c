-- one row per day (UTC, by start) and outcome, of the tasks in scope
-- inputs: scope
-- parameters: those of scope
WITH scope AS NOT MATERIALIZED ({scope})
SELECT
    date_trunc('day', started_at) AS day,
    outcome,
    outcome NOT IN ('completed', 'running', 'handed_over', 'waiting_human') AS went_wrong,
    count(*) AS tasks
FROM scope
WHERE started_at IS NOT NULL
GROUP BY ALL
ORDER BY day, outcome
