-- one row per day (UTC, of the request) and kind of intervention, of the tasks in scope
-- inputs: interventions
-- parameters: those of scope
WITH moments AS NOT MATERIALIZED ({scope of interventions})
SELECT date_trunc('day', coalesce(requested_at, decided_at)) AS day, kind, count(*) AS interventions
FROM moments
WHERE coalesce(requested_at, decided_at) IS NOT NULL
GROUP BY ALL
ORDER BY day, kind
