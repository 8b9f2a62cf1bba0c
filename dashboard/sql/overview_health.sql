-- one row: how far the numbers of the tasks in scope can be trusted
-- inputs: scope
-- parameters: those of scope
WITH scope AS NOT MATERIALIZED ({scope})
SELECT
    count(DISTINCT service) AS senders,
    count(*) FILTER (outcome = 'unknown') AS unknown,
    count(*) FILTER (outcome = 'unknown') / nullif(count(*), 0) AS unknown_share,
    count(*) FILTER (model_calls > 0 AND NOT coalesce(cost_complete, false)) AS unpriced,
    count(*) FILTER (model_calls > 0 AND NOT coalesce(cost_complete, false)) / nullif(count(*), 0)
        AS unpriced_share,
    count(*) FILTER (telemetry_duplicates > 0) AS delivered_twice,
    count(*) FILTER (excluded_reason IS NOT NULL) AS excluded,
    count(*) FILTER (environment IS NULL) AS without_environment,
    count(*) FILTER (app_version IS NULL) AS without_version
FROM scope
