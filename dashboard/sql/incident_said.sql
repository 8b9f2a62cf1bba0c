-- one row per thing a person said of an incident, newest first
-- inputs: incident_log
-- parameters: id
SELECT said_at, state, verdict, note
FROM incident_log
WHERE incident_id = $id
ORDER BY said_at DESC
