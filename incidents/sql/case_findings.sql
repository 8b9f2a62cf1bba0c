-- Grain: one row per finding of an incident, the representative task's first, then the newest.
-- Inputs: incident_findings, findings, tasks, runs; parameter ids (VARCHAR[] of incident ids).
SELECT
  'inc-' || s.fingerprint AS incident_id, s.finding_id, s.task_id, f.kind, f.detail, f.rule, f.evidence, s.happened_at,
  list(DISTINCT r.trace_id ORDER BY r.trace_id) AS trace_ids
FROM incident_findings s
JOIN findings f USING (finding_id)
JOIN runs r ON r.task_id = s.task_id
WHERE 'inc-' || s.fingerprint IN (SELECT unnest($ids::VARCHAR[]))
GROUP BY ALL
ORDER BY incident_id, s.happened_at DESC, s.finding_id
