-- one row: the last 24 hours beside the 24 hours before, of the tasks in scope
-- inputs: scope, actions, pipeline
-- parameters: those of scope; days must be 2
WITH scope AS NOT MATERIALIZED ({scope}),
recent AS (
    SELECT s.*, s.started_at > (SELECT max(as_of) FROM pipeline) - INTERVAL 1 DAY AS today
    FROM scope s
),
duplicates AS (
    SELECT task_id, sum(duplicates_unprotected)::BIGINT AS unprotected
    FROM actions
    WHERE duplicates_unprotected > 0
    GROUP BY task_id
)
SELECT
    count(*) FILTER (today) AS tasks,
    count(*) FILTER (today) - count(*) FILTER (NOT today) AS tasks_change,
    count(*) FILTER (today AND outcome IN ('failed', 'lost', 'dead_letter')) AS failed,
    count(*) FILTER (today AND outcome IN ('failed', 'lost', 'dead_letter'))
        - count(*) FILTER (NOT today AND outcome IN ('failed', 'lost', 'dead_letter')) AS failed_change,
    coalesce(sum(d.unprotected) FILTER (today), 0)::BIGINT AS duplicates,
    (coalesce(sum(d.unprotected) FILTER (today), 0)
        - coalesce(sum(d.unprotected) FILTER (NOT today), 0))::BIGINT AS duplicates_change,
    coalesce(sum(interventions) FILTER (today), 0)::BIGINT AS interventions,
    (coalesce(sum(interventions) FILTER (today), 0)
        - coalesce(sum(interventions) FILTER (NOT today), 0))::BIGINT AS interventions_change,
    sum(cost_usd) FILTER (today) AS cost_usd,
    sum(cost_usd) FILTER (today) - sum(cost_usd) FILTER (NOT today) AS cost_change,
    quantile_cont(active_s, 0.95) FILTER (today) AS active_p95_s,
    quantile_cont(active_s, 0.95) FILTER (today) - quantile_cont(active_s, 0.95) FILTER (NOT today)
        AS active_p95_change_s
FROM recent
LEFT JOIN duplicates d USING (task_id)
