-- one row per day (UTC) an incident was seen on
-- inputs: incident_findings
-- parameters: fingerprint
SELECT date_trunc('day', happened_at) AS day, count(DISTINCT task_id) AS tasks
FROM incident_findings
WHERE fingerprint = $fingerprint
GROUP BY ALL
ORDER BY day
