-- one row per event of the SLIs an objective reads, in (since, until]; task ids only where asked for
-- inputs: sli_events
-- parameters: slis (JSON array), since, until (UTC), bad_only (boolean), op, cut (or NULL), with_tasks (boolean)
SELECT
    sli, CASE WHEN $with_tasks::BOOLEAN THEN task_id END AS task_id, event_time, verdict, value, agent, task_type,
    service, environment, app_version, excluded_reason, evidence
FROM sli_events
WHERE list_contains(from_json($slis::VARCHAR, '["VARCHAR"]'), sli)
  AND event_time > $since::TIMESTAMP AND event_time <= $until::TIMESTAMP
  AND (
      NOT $bad_only::BOOLEAN
      OR verdict IN ('bad', 'unknown')
      OR verdict = 'good' AND CASE $op::VARCHAR
          WHEN 'lt' THEN coalesce(value >= $cut::DOUBLE, true)
          WHEN 'lte' THEN coalesce(value > $cut::DOUBLE, true)
          WHEN 'gt' THEN coalesce(value <= $cut::DOUBLE, true)
          WHEN 'gte' THEN coalesce(value < $cut::DOUBLE, true)
          ELSE false
      END
  )
