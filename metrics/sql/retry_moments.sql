-- Grain: one row per task, tool and second in which the task tried that tool again by itself.
-- Inputs: retry_chains.
-- Kept, because it is the one thing that can only be seen over many tasks: see retry_meetings.sql.
SELECT
  task_id, name AS tool, start_ns // 1000000000 AS second,
  arg_min(chain_id, (start_ns, span_id)) AS chain_id,
  arg_min(span_id, (start_ns, span_id)) AS span_id,
  arg_min(place, (start_ns, span_id)) AS place
FROM retry_chains
WHERE role = 'tool' AND goes_on AND by_client AND before_outcome <> 'ok'
GROUP BY task_id, name, start_ns // 1000000000
