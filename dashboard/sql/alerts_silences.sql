-- one row per silence that holds or is still to come, the next to end first
-- inputs: alert_silences, pipeline
SELECT silence_id, starts_at, ends_at, slo, agent, severity, reason, created_at
FROM alert_silences
WHERE ended_at IS NULL AND ends_at > (SELECT max(as_of) FROM pipeline)
ORDER BY ends_at, silence_id
