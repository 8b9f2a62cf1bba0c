-- one row per measure, agent and task type, those that moved first
-- inputs: drift
-- parameters: agents, task_types (JSON arrays or NULL)
SELECT
    metric, agent, task_type, state, opened_on, baseline_typical, typical, shift, shift_lower, shift_upper, detectable,
    agent_mix, agent_rate, baseline_n, n
FROM drift
WHERE ($agents::VARCHAR IS NULL OR list_contains(from_json($agents::VARCHAR, '["VARCHAR"]'), agent))
  AND ($task_types::VARCHAR IS NULL OR list_contains(from_json($task_types::VARCHAR, '["VARCHAR"]'), task_type))
ORDER BY opened_on IS NULL, abs(shift) DESC NULLS LAST, metric, agent, task_type
