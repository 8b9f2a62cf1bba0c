-- one row per task that passes the filters of the pages; other files stand on it as {scope}
-- inputs: tasks, pipeline
-- parameters: days (back from the last pass, or NULL), services, agents, task_types, environments, versions
--             (JSON arrays or NULL)
SELECT *
FROM tasks
WHERE ($days::BIGINT IS NULL OR started_at >= (SELECT max(as_of) FROM pipeline) - to_days($days::INTEGER))
  AND ($services::VARCHAR IS NULL OR list_contains(from_json($services::VARCHAR, '["VARCHAR"]'), service))
  AND ($agents::VARCHAR IS NULL OR list_contains(from_json($agents::VARCHAR, '["VARCHAR"]'), agent))
  AND ($task_types::VARCHAR IS NULL OR list_contains(from_json($task_types::VARCHAR, '["VARCHAR"]'), task_type))
  AND (
      $environments::VARCHAR IS NULL
      OR list_contains(from_json($environments::VARCHAR, '["VARCHAR"]'), environment)
  )
  AND ($versions::VARCHAR IS NULL OR list_contains(from_json($versions::VARCHAR, '["VARCHAR"]'), app_version))
