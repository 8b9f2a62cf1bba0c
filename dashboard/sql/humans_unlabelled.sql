-- one row per task in scope that asked a human and of which nobody says whether it needed one, the newest first
-- inputs: human_labels, interventions
-- parameters: those of scope
-- not remembered: people change it
WITH open AS (
    SELECT task_id, agent, task_type, outcome, asks, coalesce(asked_at, task_started_at) AS asked_at
    FROM ({scope of (SELECT *, started_at AS task_started_at FROM human_labels)})
    WHERE asked AND needed IS NULL AND outcome NOT IN ('running', 'waiting_human')
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
