-- one row per objective, the ones that need a look first, with what it was a day ago
-- inputs: slo_status, slo_history
-- parameters: agents, task_types (JSON arrays or NULL)
-- Without a choice of agents or types the rows of all are shown; with one, the rows of just those.
WITH yesterday AS (
    SELECT h.slo, h.objective, arg_max(h.sli, h."at") AS sli, arg_max(h.remaining, h."at") AS remaining
    FROM slo_history h
    JOIN slo_status s USING (slo, objective)
    WHERE h."at" <= s.window_end - INTERVAL 23 HOUR AND h.revision IS NOT DISTINCT FROM s.revision
    GROUP BY h.slo, h.objective
)
SELECT
    s.*,
    s.remaining - y.remaining AS remaining_change,
    s.sli - y.sli AS sli_change,
    s.n > 0 AS counted,
    -- What is unknown or excluded is something to look at: no verdict is not the same as no event.
    coalesce(s.n, 0) + coalesce(s.unknown, 0) + coalesce(s.excluded, 0) > 0 AS seen
FROM slo_status s
LEFT JOIN yesterday y USING (slo, objective)
WHERE CASE
    WHEN $agents::VARCHAR IS NULL AND $task_types::VARCHAR IS NULL THEN NOT s.split
    ELSE s.split
        AND ($agents::VARCHAR IS NULL OR list_contains(from_json($agents::VARCHAR, '["VARCHAR"]'), s.agent))
        AND (
            $task_types::VARCHAR IS NULL
            OR list_contains(from_json($task_types::VARCHAR, '["VARCHAR"]'), s.task_type)
        )
END
ORDER BY
    list_position(['invalid', 'exhausted', 'at_risk', 'ok', 'insufficient_data', 'no_data'], s.state),
    s.remaining NULLS LAST,
    s.slo,
    s.objective
