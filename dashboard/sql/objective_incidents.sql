-- one row per incident of these fingerprints
-- inputs: incidents
-- parameters: fingerprints (JSON array)
SELECT incident_id, fingerprint, kind, mode, severity, state, agent, tool, first_seen, last_seen
FROM incidents
WHERE list_contains(from_json($fingerprints::VARCHAR, '["VARCHAR"]'), fingerprint)
ORDER BY last_seen DESC, incident_id
