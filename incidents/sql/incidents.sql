-- Grain: one row per incident: the findings of one structural fingerprint.
-- Inputs: incident_findings, attempts, incident_log (what operators said; kept apart, no derivation changes it).
WITH repaired AS (
  SELECT DISTINCT task_id FROM attempts WHERE compensated
),
grouped AS (
  SELECT
    fingerprint,
    any_value(kind) AS kind,
    any_value(mode) AS mode,
    max(CASE severity WHEN 'high' THEN 3 WHEN 'medium' THEN 2 ELSE 1 END) AS gravity,
    any_value(agent) AS agent,
    any_value(tool) AS tool,
    any_value(fault) AS fault,
    any_value(error) AS error,
    any_value(shape) AS shape,
    count(DISTINCT task_id) AS seen_count,
    min(happened_at) AS first_seen,
    max(happened_at) AS last_seen,
    -- the newest task of which a case can be made, rather one where nothing was undone afterwards; else the newest
    arg_max(task_id, (complete, r.task_id IS NULL, happened_at, task_id)) AS representative_task_id,
    count(*) AS findings
  FROM incident_findings f
  LEFT JOIN repaired r USING (task_id)
  GROUP BY fingerprint
),
said AS (
  SELECT
    incident_id,
    arg_max(state, said_at) FILTER (WHERE state IS NOT NULL) AS state,
    max(said_at) FILTER (WHERE state IS NOT NULL) AS state_at,
    arg_max(note, said_at) FILTER (WHERE note IS NOT NULL) AS note,
    arg_max(verdict, said_at) FILTER (WHERE verdict IS NOT NULL) AS verdict
  FROM incident_log
  GROUP BY incident_id
)
SELECT
  'inc-' || g.fingerprint AS incident_id,
  g.fingerprint, g.kind,
  CASE g.gravity WHEN 3 THEN 'high' WHEN 2 THEN 'medium' ELSE 'low' END AS severity,
  CASE
    WHEN s.state = 'resolved' AND g.last_seen > s.state_at THEN 'reopened'
    ELSE coalesce(s.state, 'open')
  END AS state,
  nullif(g.agent, '') AS agent,
  nullif(g.tool, '') AS tool,
  g.seen_count, g.first_seen, g.last_seen, g.representative_task_id,
  g.mode, g.fault, g.error, g.shape, g.findings,
  s.note, s.verdict
FROM grouped g
LEFT JOIN said s ON s.incident_id = 'inc-' || g.fingerprint
