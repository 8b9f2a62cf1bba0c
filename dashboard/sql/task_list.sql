-- one row per task that passes the filters, newest first; `matching` counts them all
-- inputs: tasks, actions, task_aliases, runs, pipeline
-- parameters: days (back from the last pass, or NULL), since, until (UTC or NULL), services, agents, task_types,
--             environments, versions, outcomes (JSON arrays or NULL), duplicates, interventions (booleans),
--             text (part of an id or NULL), max_rows, skip_rows
WITH duplicates AS (
    SELECT task_id, sum(duplicates_unprotected)::BIGINT AS unprotected
    FROM actions
    WHERE duplicates_unprotected > 0
    GROUP BY task_id
),
passing AS (
    SELECT t.task_id, t.started_at
    FROM tasks t
    WHERE ($days::BIGINT IS NULL OR t.started_at >= (SELECT max(as_of) FROM pipeline) - to_days($days::INTEGER))
      AND ($since::TIMESTAMP IS NULL OR t.started_at >= $since::TIMESTAMP)
      AND ($until::TIMESTAMP IS NULL OR t.started_at < $until::TIMESTAMP)
      AND ($services::VARCHAR IS NULL OR list_contains(from_json($services::VARCHAR, '["VARCHAR"]'), t.service))
      AND ($agents::VARCHAR IS NULL OR list_contains(from_json($agents::VARCHAR, '["VARCHAR"]'), t.agent))
      AND ($task_types::VARCHAR IS NULL OR list_contains(from_json($task_types::VARCHAR, '["VARCHAR"]'), t.task_type))
      AND (
          $environments::VARCHAR IS NULL
          OR list_contains(from_json($environments::VARCHAR, '["VARCHAR"]'), t.environment)
      )
      AND ($versions::VARCHAR IS NULL OR list_contains(from_json($versions::VARCHAR, '["VARCHAR"]'), t.app_version))
      AND ($outcomes::VARCHAR IS NULL OR list_contains(from_json($outcomes::VARCHAR, '["VARCHAR"]'), t.outcome))
      AND (NOT $duplicates::BOOLEAN OR t.task_id IN (SELECT task_id FROM duplicates))
      AND (NOT $interventions::BOOLEAN OR t.interventions > 0)
      AND (
          $text::VARCHAR IS NULL
          OR contains(lower(t.task_id), lower($text::VARCHAR))
          OR contains(lower(t.conversation_id), lower($text::VARCHAR))
          OR t.task_id IN (
              SELECT task_id FROM task_aliases WHERE contains(lower(alias), lower($text::VARCHAR))
              UNION
              SELECT task_id FROM runs WHERE contains(lower(trace_id), lower($text::VARCHAR))
          )
      )
),
-- The page is found by two narrow columns; all others are read for its rows alone.
shown AS (
    SELECT task_id, started_at
    FROM passing
    ORDER BY started_at DESC NULLS LAST, task_id
    LIMIT $max_rows::BIGINT OFFSET $skip_rows::BIGINT
)
SELECT
    t.started_at,
    t.task_id,
    t.agent,
    t.task_type,
    t.outcome,
    t.outcome_evidence,
    coalesce(d.unprotected, 0) AS duplicates_unprotected,
    t.interventions,
    t.runs,
    t.tool_calls,
    t.wall_s,
    t.active_s,
    t.cost_usd,
    t.cost_complete,
    t.excluded_reason,
    (SELECT count(*) FROM passing) AS matching
FROM tasks t
JOIN shown s USING (task_id)
LEFT JOIN duplicates d USING (task_id)
-- Row groups of other times are skipped; tasks that say no time come last and are few.
WHERE t.started_at IS NULL OR t.started_at BETWEEN (SELECT min(started_at) FROM shown) AND (SELECT max(started_at) FROM shown)
ORDER BY t.started_at DESC NULLS LAST, t.task_id
