-- one row per finding in the task, the severest first
-- inputs: findings
-- parameters: id (a task_id)
SELECT kind, severity, detail, rule, evidence, found_at
FROM findings
WHERE task_id = $id
ORDER BY list_position(['critical', 'high', 'medium', 'low', 'info'], severity), kind, finding_id
