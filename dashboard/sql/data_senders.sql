-- one row per service: what its tasks lack
-- inputs: tasks
-- remembered: until the next pass
SELECT
    service,
    count(*) AS tasks,
    count(DISTINCT agent) AS agents,
    max(started_at) AS last_started,
    max(started_at) < (SELECT max(as_of) FROM pipeline) - INTERVAL 1 DAY AS silent,
    count(conversation_id) / count(*) AS with_conversation,
    count(environment) / count(*) AS with_environment,
    count(app_version) / count(*) AS with_version,
    count(*) FILTER (outcome_evidence IN ('stated', 'evaluated')) / count(*) AS verified,
    count(*) FILTER (outcome = 'unknown') / count(*) AS unknown,
    count(*) FILTER (model_calls > 0 AND coalesce(input_tokens, 0) + coalesce(output_tokens, 0) = 0)
        / nullif(count(*) FILTER (model_calls > 0), 0) AS without_tokens,
    count(*) FILTER (model_calls > 0 AND coalesce(cost_complete, false)) / nullif(count(*) FILTER (model_calls > 0), 0)
        AS priced,
    count(*) FILTER (telemetry_duplicates > 0) AS delivered_twice
FROM tasks
GROUP BY service
ORDER BY tasks DESC, service
