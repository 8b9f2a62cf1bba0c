-- one row per fingerprint of incidents behind the bad events in (since, until], most bad tasks first
-- inputs: incident_findings, sli_events
-- parameters: sli, since, until (UTC), agent, task_type, op, cut (or NULL)
-- remembered: until the next pass
WITH bad_tasks AS (
    SELECT DISTINCT task_id
    FROM sli_events
    WHERE sli = $sli
      AND event_time > $since::TIMESTAMP AND event_time <= $until::TIMESTAMP
      AND ($agent::VARCHAR IS NULL OR agent = $agent)
      AND ($task_type::VARCHAR IS NULL OR task_type = $task_type)
      AND (
          verdict = 'bad'
          OR verdict = 'good' AND CASE $op::VARCHAR
              WHEN 'lt' THEN value >= $cut::DOUBLE
              WHEN 'lte' THEN value > $cut::DOUBLE
              WHEN 'gt' THEN value <= $cut::DOUBLE
              WHEN 'gte' THEN value < $cut::DOUBLE
              ELSE false
          END
      )
)
SELECT f.fingerprint, count(DISTINCT f.task_id) AS bad_tasks
FROM incident_findings f
JOIN bad_tasks b USING (task_id)
GROUP BY f.fingerprint
ORDER BY bad_tasks DESC, f.fingerprint
LIMIT 12
