-- one row per intervention of the tasks in scope, open ones or long waits first, then the newest; `matching` counts all
-- inputs: interventions
-- parameters: those of scope; kinds, decisions (JSON arrays or NULL); kind with its level, tool, agent (or NULL);
--             longest_first (boolean)
WITH moments AS NOT MATERIALIZED ({scope of interventions})
SELECT
    requested_at, decided_at, task_id, agent, kind, decision, tool, level, required_level, wait_s,
    decision IS NULL AND decided_at IS NULL AS is_open,
    count(*) OVER () AS matching
FROM moments
WHERE ($kinds::VARCHAR IS NULL OR list_contains(from_json($kinds::VARCHAR, '["VARCHAR"]'), kind))
  AND (
      $decisions::VARCHAR IS NULL
      OR list_contains(
          from_json($decisions::VARCHAR, '["VARCHAR"]'), CASE WHEN is_open THEN 'open' ELSE decision END
      )
  )
  AND ($kind::VARCHAR IS NULL OR kind = $kind AND level IS NOT DISTINCT FROM $level::VARCHAR)
  AND ($tool::VARCHAR IS NULL OR tool = $tool)
  AND ($agent::VARCHAR IS NULL OR agent = $agent)
ORDER BY
    CASE WHEN $longest_first::BOOLEAN THEN wait_s END DESC NULLS LAST,
    is_open DESC,
    coalesce(requested_at, decided_at) DESC, intervention_id
LIMIT 100
