-- one row: how often a human took part in the tasks in scope, what they decided and how long it took
-- inputs: scope, interventions
-- parameters: those of scope
WITH asked_of AS (
    SELECT count(*) AS tasks FROM ({scope})
),
moments AS (
    SELECT *, decided_at IS NULL AND decision IS NULL AS is_open
    FROM ({scope of interventions})
)
SELECT
    (SELECT tasks FROM asked_of) AS tasks,
    count(DISTINCT task_id) AS tasks_with,
    count(DISTINCT task_id) / nullif((SELECT tasks FROM asked_of), 0) AS share_with,
    count(*) AS interventions,
    count(*) FILTER (is_open) AS open,
    min(requested_at) FILTER (is_open) AS oldest_open,
    count(*) FILTER (decision = 'approved') AS approved,
    count(*) FILTER (decision = 'edited') AS edited,
    count(*) FILTER (decision = 'rejected') AS rejected,
    count(*) FILTER (decision = 'rejected')
        / nullif(count(*) FILTER (decision IN ('approved', 'edited', 'rejected')), 0) AS rejected_share,
    median(wait_s) AS wait_median_s,
    quantile_cont(wait_s, 0.95) AS wait_p95_s,
    sum(wait_s) AS wait_total_s
FROM moments
