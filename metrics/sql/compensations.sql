-- Grain: one row per (attempt, later attempt that undoes it) of one task.
-- Inputs: executions.
-- Step 9 of the decision in docs/definitions: an inverse action that a rule names, that states what it undoes, or whose
-- arguments name the entity that the earlier attempt made.
SELECT
  x.task_id, x.attempt_id, z.attempt_id AS by_attempt, z.span_id AS by_span_id, z.last_ns AS undone_ns,
  CASE
    WHEN z.compensates IN (x.idempotency_key, x.call_id) OR list_contains(x.entities, z.compensates) THEN 'compensation.stated'
    WHEN z.is_inverse AND z.tool <> x.tool AND list_has_any(z.leaves, x.entities) THEN 'compensation.names_the_entity'
    ELSE 'compensation.configured_pair'
  END AS rule
FROM executions x
JOIN executions z
  ON z.task_id = x.task_id AND z.start_ns > x.start_ns
WHERE x.is_side_effect AND x.disposition = 'executed' AND x.outcome <> 'refused'
  AND z.is_side_effect AND z.disposition = 'executed' AND z.outcome = 'ok'
  AND (
    z.compensates IN (x.idempotency_key, x.call_id)
    OR list_contains(x.entities, z.compensates)
    OR (list_has_any(z.leaves, list_concat(x.leaves, x.entities))
        AND len(list_filter(x.compensated_by, lambda undoer: z.tool GLOB undoer)) > 0)
    OR (z.is_inverse AND z.tool <> x.tool AND list_has_any(z.leaves, x.entities))
  )
