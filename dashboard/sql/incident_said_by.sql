-- one row per thing a person said of an incident, newest first, with who said it
-- inputs: incident_log, operator_log
-- parameters: id
-- The log of commands has the name: of those about this incident, the last that began before it was said.
WITH asked AS (
    SELECT acted_at, acted_by
    FROM operator_log
    WHERE action = 'incidents.say' AND refused IS NULL AND arguments ->> '$.incident_id' = $id
)
SELECT
    s.said_at, s.state, s.verdict, s.note,
    CASE WHEN s.said_at - a.acted_at < INTERVAL 1 MINUTE THEN a.acted_by END AS said_by
FROM incident_log s
ASOF LEFT JOIN asked a ON s.said_at >= a.acted_at
WHERE s.incident_id = $id
ORDER BY s.said_at DESC
