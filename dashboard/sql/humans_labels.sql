-- one row per agent whose interventions of the tasks in scope are labelled, the most labelled first
-- inputs: scope, interventions, findings
-- parameters: those of scope
-- The label is required_level: who should have decided, or `none`. Missed are tasks that did without the approval
-- their policy demands; other misses leave no mark in a trace.
WITH scope AS NOT MATERIALIZED ({scope}),
moments AS (
    SELECT
        s.agent,
        count(*) AS interventions,
        count(i.required_level) AS labelled,
        count(*) FILTER (lower(i.required_level) <> 'none') AS needed,
        count(*) FILTER (i.level = i.required_level) AS right_level
    FROM interventions i
    JOIN scope s USING (task_id)
    GROUP BY s.agent
),
missed AS (
    SELECT s.agent, count(DISTINCT f.task_id) AS missed
    FROM findings f
    JOIN scope s USING (task_id)
    WHERE f.kind = 'executed_without_approval'
    GROUP BY s.agent
)
SELECT
    m.agent,
    m.interventions,
    m.labelled,
    m.labelled / m.interventions AS coverage,
    m.needed,
    m.needed / m.labelled AS precision,
    coalesce(x.missed, 0) AS missed,
    m.needed / nullif(m.needed + coalesce(x.missed, 0), 0) AS recall,
    m.right_level,
    m.right_level / m.labelled AS right_level_share
FROM moments m
LEFT JOIN missed x ON x.agent IS NOT DISTINCT FROM m.agent
WHERE m.labelled > 0
ORDER BY m.labelled DESC, m.agent
