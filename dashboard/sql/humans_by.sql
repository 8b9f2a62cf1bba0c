-- one row per kind and level, per tool and per agent (`dimension`), of the tasks in scope, the most frequent first
-- inputs: interventions
-- parameters: those of scope
WITH moments AS NOT MATERIALIZED ({scope of interventions})
SELECT
    CASE WHEN grouping(kind) = 0 THEN 'kind' WHEN grouping(tool) = 0 THEN 'tool' ELSE 'agent' END AS dimension,
    CASE WHEN grouping(kind) = 0 THEN kind WHEN grouping(tool) = 0 THEN tool ELSE agent END AS name,
    level,
    count(*) AS interventions,
    count(DISTINCT task_id) AS tasks,
    count(*) FILTER (decision = 'approved') AS approved,
    count(*) FILTER (decision = 'edited') AS edited,
    count(*) FILTER (decision = 'rejected') AS rejected,
    count(*) FILTER (decision IN ('answered', 'took_over')) AS answered_or_took_over,
    count(*) FILTER (decision IS NULL AND decided_at IS NULL) AS open,
    median(wait_s) AS wait_median_s,
    quantile_cont(wait_s, 0.95) AS wait_p95_s
FROM moments
GROUP BY GROUPING SETS ((kind, level), (tool), (agent))
HAVING coalesce(name, '') <> '' OR dimension = 'kind'
ORDER BY dimension, interventions DESC, name, level
