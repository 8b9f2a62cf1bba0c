-- one row per incident that nobody has closed, the gravest and newest first
-- inputs: incidents, pipeline
-- parameters: agents (JSON array or NULL)
SELECT
    incident_id, kind, mode, severity, state, agent, tool, seen_count, first_seen, last_seen,
    representative_task_id,
    first_seen > (SELECT max(as_of) FROM pipeline) - INTERVAL 1 DAY AS is_new,
    count(*) OVER () AS open,
    count(*) FILTER (first_seen > (SELECT max(as_of) FROM pipeline) - INTERVAL 1 DAY) OVER () AS open_new
FROM incidents
WHERE state IN ('open', 'reopened')
  AND ($agents::VARCHAR IS NULL OR list_contains(from_json($agents::VARCHAR, '["VARCHAR"]'), agent))
ORDER BY
    list_position(['critical', 'high', 'medium', 'low', 'info'], severity),
    seen_count DESC,
    last_seen DESC,
    incident_id
LIMIT 6
