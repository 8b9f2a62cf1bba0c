-- one row per attempt of the task
-- inputs: attempts
-- parameters: id (a task_id)
SELECT
    started_at, ended_at, tool, effect_class, class_source, attempt_no, outcome, disposition, duplicate, cause,
    effect, compensated, suspected, idempotency_key, arguments, rule, evidence, action_id, run_id, span_id, seen_by
FROM attempts
WHERE task_id = $id
ORDER BY started_at, attempt_id
