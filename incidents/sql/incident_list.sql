-- Grain: one row per incident that passes the filters, worst and newest first.
-- Inputs: incidents; parameters since (TIMESTAMP or NULL), kinds, states, agents (VARCHAR[], NULL for all), max_rows.
SELECT
  incident_id, kind, mode, severity, state, agent, tool, seen_count, first_seen, last_seen, representative_task_id, verdict, note,
  count(*) OVER () AS matching
FROM incidents
WHERE ($since::TIMESTAMP IS NULL OR last_seen >= $since::TIMESTAMP)
  AND ($kinds::VARCHAR[] IS NULL OR list_contains($kinds::VARCHAR[], kind))
  AND ($states::VARCHAR[] IS NULL OR list_contains($states::VARCHAR[], state))
  AND ($agents::VARCHAR[] IS NULL OR list_contains($agents::VARCHAR[], agent))
ORDER BY state IN ('resolved', 'ignored'), CASE severity WHEN 'high' THEN 0 WHEN 'medium' THEN 1 ELSE 2 END, last_seen DESC, incident_id
LIMIT $max_rows::BIGINT
