-- one row per event of the SLIs an objective reads, in (since, until]; task ids only where asked for
-- inputs: sli_events
-- parameters: slis (JSON array), since, until (UTC), with_tasks (boolean)
SELECT
    sli, CASE WHEN $with_tasks::BOOLEAN THEN task_id END AS task_id, event_time, verdict, value, agent, task_type,
    service, environment, app_version, excluded_reason, evidence
FROM sli_events
WHERE list_contains(from_json($slis::VARCHAR, '["VARCHAR"]'), sli)
  AND event_time > $since::TIMESTAMP AND event_time <= $until::TIMESTAMP
