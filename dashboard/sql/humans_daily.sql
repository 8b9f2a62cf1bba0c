-- one row per day (UTC, of the request) and kind of intervention, of the tasks in scope
-- inputs: scope, interventions
-- parameters: those of scope
WITH scope AS NOT MATERIALIZED ({scope})
SELECT date_trunc('day', coalesce(i.requested_at, i.decided_at)) AS day, i.kind, count(*) AS interventions
FROM interventions i
JOIN scope s USING (task_id)
WHERE coalesce(i.requested_at, i.decided_at) IS NOT NULL
GROUP BY ALL
ORDER BY day, i.kind
