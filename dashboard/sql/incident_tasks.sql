-- one row per task an incident was seen in, newest first
-- inputs: incident_findings, findings, tasks
-- parameters: fingerprint
SELECT
    i.task_id,
    max(i.happened_at) AS happened_at,
    any_value(t.outcome) AS outcome,
    any_value(t.app_version) AS app_version,
    any_value(t.cost_usd) AS cost_usd,
    any_value(f.detail) AS detail,
    any_value(f.rule) AS rule,
    any_value(f.evidence) AS evidence
FROM incident_findings i
LEFT JOIN tasks t USING (task_id)
LEFT JOIN findings f USING (finding_id)
WHERE i.fingerprint = $fingerprint
GROUP BY i.task_id
ORDER BY happened_at DESC, i.task_id
LIMIT 100
