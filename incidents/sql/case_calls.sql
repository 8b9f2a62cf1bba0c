-- Grain: one row per tool call of the tasks, executed or not, in order.
-- Inputs: attempts, steps; parameter tasks (VARCHAR[]).
SELECT
  a.task_id, a.run_id, a.trace_id, a.span_id, a.tool, a.effect_class, a.class_source, a.arguments, a.result, a.idempotency_key,
  a.call_id, a.outcome, a.disposition, a.duplicate, a.cause, a.compensated, a.evidence, a.started_at, a.ended_at, a.error_class,
  a.decision, s.error_message, s.decision_arguments, s.on_failure
FROM attempts a
LEFT JOIN steps s ON s.task_id = a.task_id AND s.trace_id = a.trace_id AND s.span_id = a.span_id
WHERE a.task_id IN (SELECT unnest($tasks::VARCHAR[]))
ORDER BY a.task_id, a.started_at, a.span_id
