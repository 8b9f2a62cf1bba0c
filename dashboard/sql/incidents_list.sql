-- one row per incident that passes the filters, open and grave ones first; `matching` counts them all
-- inputs: incidents, pipeline
-- parameters: days (last seen within, or NULL), agents, states, severities, kinds (JSON arrays or NULL)
SELECT
    incident_id, kind, mode, severity, state, agent, tool, seen_count, findings, first_seen, last_seen,
    representative_task_id, verdict, note,
    count(*) OVER () AS matching,
    count(*) FILTER (state IN ('open', 'reopened')) OVER () AS open
FROM incidents
WHERE ($days::BIGINT IS NULL OR last_seen >= (SELECT max(as_of) FROM pipeline) - to_days($days::INTEGER))
  AND ($agents::VARCHAR IS NULL OR list_contains(from_json($agents::VARCHAR, '["VARCHAR"]'), agent))
  AND ($states::VARCHAR IS NULL OR list_contains(from_json($states::VARCHAR, '["VARCHAR"]'), state))
  AND ($severities::VARCHAR IS NULL OR list_contains(from_json($severities::VARCHAR, '["VARCHAR"]'), severity))
  AND ($kinds::VARCHAR IS NULL OR list_contains(from_json($kinds::VARCHAR, '["VARCHAR"]'), kind))
ORDER BY
    list_position(['reopened', 'open', 'acknowledged', 'resolved', 'ignored'], state) > 2,
    list_position(['critical', 'high', 'medium', 'low', 'info'], severity),
    seen_count DESC,
    last_seen DESC,
    incident_id
LIMIT 300
