-- one row per agent and task type that asked humans or was labelled, in the last `days`, the most labelled first
-- inputs: escalation_quality
-- parameters: days (7, 28 or 90), agents, task_types (JSON arrays or NULL)
SELECT *
FROM escalation_quality
WHERE days = $days
  AND (asked > 0 OR labelled > 0 OR suspected_missed > 0)
  AND ($agents::VARCHAR IS NULL OR list_contains(from_json($agents::VARCHAR, '["VARCHAR"]'), agent))
  AND ($task_types::VARCHAR IS NULL OR list_contains(from_json($task_types::VARCHAR, '["VARCHAR"]'), task_type))
ORDER BY labelled DESC, asked DESC, agent, task_type
