-- one row per alert that passes the filters, those that fire first, then the newest; counts of all states in every row
-- inputs: alerts
-- parameters: states, agents, severities (JSON arrays or NULL)
WITH counted AS (
    SELECT *, count(*) OVER () AS matching
    FROM alerts
    WHERE ($states::VARCHAR IS NULL OR list_contains(from_json($states::VARCHAR, '["VARCHAR"]'), state))
      AND ($agents::VARCHAR IS NULL OR list_contains(from_json($agents::VARCHAR, '["VARCHAR"]'), agent))
      AND ($severities::VARCHAR IS NULL OR list_contains(from_json($severities::VARCHAR, '["VARCHAR"]'), severity))
)
SELECT
    alert_id, kind, slo, objective, severity, service, agent, task_type, tool, state, pending_since, fired_at,
    resolved_at, told_at, summary, silenced_by, reason,
    -- `32 bad of 1180 in 28 d`: of the window of the objective; events and drift have none
    annotations ->> 'window' AS counted,
    annotations ->> 'window_pair' AS window_pair,
    matching
FROM counted
ORDER BY
    list_position(['firing', 'frozen', 'pending', 'resolved'], state),
    list_position(['page', 'ticket'], severity),
    coalesce(fired_at, pending_since) DESC,
    alert_id
LIMIT 300
