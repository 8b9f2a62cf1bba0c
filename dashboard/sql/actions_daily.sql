-- one row per day (UTC) and kind of repeat, of the tasks in scope
-- inputs: scope, attempts
-- parameters: those of scope
WITH scope AS NOT MATERIALIZED ({scope})
SELECT date_trunc('day', a.started_at) AS day, a.duplicate, count(*) AS repeats
FROM attempts a
SEMI JOIN scope s USING (task_id)
WHERE a.duplicate IS NOT NULL AND a.started_at IS NOT NULL
GROUP BY ALL
ORDER BY day, a.duplicate
