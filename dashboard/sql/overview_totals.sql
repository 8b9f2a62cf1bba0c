-- one row: the tasks in scope by what is still open
-- inputs: scope
-- parameters: those of scope
WITH scope AS NOT MATERIALIZED ({scope})
SELECT
    count(*) AS tasks,
    count(*) FILTER (outcome = 'running') AS running,
    count(*) FILTER (outcome = 'waiting_human') AS waiting_human,
    min(ended_at) FILTER (outcome = 'waiting_human') AS oldest_waiting_since
FROM scope
