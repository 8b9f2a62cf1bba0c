-- one row: tasks by what is still open
-- inputs: tasks
SELECT
    count(*) AS tasks,
    count(*) FILTER (outcome = 'running') AS running,
    count(*) FILTER (outcome = 'waiting_human') AS waiting_human,
    min(ended_at) FILTER (outcome = 'waiting_human') AS oldest_waiting_since,
    count(*) FILTER (outcome = 'completed') AS completed,
    count(*) FILTER (excluded_reason IS NOT NULL) AS excluded,
    sum(cost_usd) AS cost_usd,
    count(*) FILTER (NOT coalesce(cost_complete, false)) AS cost_incomplete
FROM tasks
