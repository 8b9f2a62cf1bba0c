-- one row per task in scope that asked a human and of which nobody says whether it needed one, the newest first
-- inputs: scope, human_labels, interventions
-- parameters: those of scope
-- not remembered: people change it
WITH scope AS NOT MATERIALIZED ({scope}),
open AS (
    SELECT h.task_id, s.agent, s.task_type, s.outcome, h.asks, coalesce(h.asked_at, s.started_at) AS asked_at
    FROM human_labels h
    JOIN scope s USING (task_id)
    WHERE h.asked AND h.needed IS NULL AND s.outcome NOT IN ('running', 'waiting_human')
),
newest AS (
    SELECT *, count(*) OVER () AS matching
    FROM open
    ORDER BY asked_at DESC, task_id
    LIMIT 20
)
SELECT n.*, l.last.kind AS kind, l.last.decision AS decision, l.last.tool AS tool, l.last.wait_s AS wait_s
FROM newest n
LEFT JOIN (
    SELECT task_id, arg_max(struct_pack(kind := kind, decision := decision, tool := tool, wait_s := wait_s), coalesce(requested_at, decided_at)) AS last
    FROM interventions
    WHERE task_id IN (SELECT task_id FROM newest)
    GROUP BY task_id
) l USING (task_id)
ORDER BY n.asked_at DESC, n.task_id
