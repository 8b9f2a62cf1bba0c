-- grain: one row per SLI and subject, for the built-in SLIs some objective reads
-- inputs: sli_events
SELECT sli, event_time, verdict, value, agent, task_type, service, environment, app_version,
       excluded_reason, evidence = 'inferred' AS inferred, task_id
FROM sli_events
WHERE list_contains($slis, sli)
