-- one row per moment at which a human took part
-- inputs: interventions
-- parameters: id (a task_id)
SELECT kind, decision, level, required_level, tool, requested_at, decided_at, wait_s, evidence
FROM interventions
WHERE task_id = $id
ORDER BY requested_at, intervention_id
