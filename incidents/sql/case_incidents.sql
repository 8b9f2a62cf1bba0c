-- Grain: one row per incident asked for, with its newest findings' tasks beside the representative one.
-- Inputs: incidents, incident_findings; parameters since (TIMESTAMP or NULL), kinds, ids (VARCHAR[], NULL for all).
SELECT
  i.incident_id, i.fingerprint, i.kind, i.severity, i.state, i.agent, i.tool, i.seen_count, i.first_seen, i.last_seen,
  i.representative_task_id, i.mode, i.fault, i.error, i.shape, i.note, i.verdict, i.findings
FROM incidents i
WHERE ($since::TIMESTAMP IS NULL OR i.last_seen >= $since::TIMESTAMP)
  AND ($kinds::VARCHAR[] IS NULL OR list_contains($kinds::VARCHAR[], i.kind))
  AND ($ids::VARCHAR[] IS NULL OR list_contains($ids::VARCHAR[], i.incident_id))
ORDER BY i.last_seen DESC, i.incident_id
