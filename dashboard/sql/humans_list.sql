-- one row per intervention of the tasks in scope, open ones first, then the newest; `matching` counts them all
-- inputs: scope, interventions
-- parameters: those of scope; kinds, decisions (JSON arrays or NULL)
WITH scope AS NOT MATERIALIZED ({scope})
SELECT
    i.requested_at, i.decided_at, i.task_id, s.agent, i.kind, i.decision, i.tool, i.level, i.required_level, i.wait_s,
    i.decision IS NULL AND i.decided_at IS NULL AS is_open,
    count(*) OVER () AS matching
FROM interventions i
JOIN scope s USING (task_id)
WHERE ($kinds::VARCHAR IS NULL OR list_contains(from_json($kinds::VARCHAR, '["VARCHAR"]'), i.kind))
  AND (
      $decisions::VARCHAR IS NULL
      OR list_contains(from_json($decisions::VARCHAR, '["VARCHAR"]'), coalesce(i.decision, 'open'))
  )
ORDER BY is_open DESC, coalesce(i.requested_at, i.decided_at) DESC, i.intervention_id
LIMIT 100
