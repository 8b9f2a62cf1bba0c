-- grain: one row per metric, agent, task type and day with measured tasks
-- inputs: sli_events; $first, $until (days), $metrics
SELECT sli AS metric, agent, task_type, CAST(epoch(date_trunc('day', event_time)) / 86400 AS BIGINT) AS day,
       median(ln(value)) AS median, count(*) AS n
FROM sli_events
WHERE list_contains($metrics, sli) AND verdict = 'good' AND value > 0
  AND event_time >= $first AND event_time < $until
GROUP BY ALL
ORDER BY ALL
