-- Grain: one row per (key, trace_id): everything by which a trace could belong to the same task as another.
-- Inputs: new_steps.
-- Wider than the joins of links.sql on purpose: it only decides what has to be looked at again together.
WITH keyed AS (
  SELECT trace_id, 'task:' || task_id_stated AS key FROM new_steps WHERE task_id_stated IS NOT NULL
  UNION
  SELECT trace_id, 'invocation:' || invocation_id FROM new_steps WHERE invocation_id IS NOT NULL
  UNION
  SELECT trace_id, 'conversation:' || conversation_id FROM new_steps WHERE conversation_id IS NOT NULL
  UNION
  SELECT trace_id, 'call:' || call_id FROM new_steps WHERE role = 'tool' AND call_id IS NOT NULL
  UNION
  SELECT trace_id, 'call:' || unnest(list_transform(list_concat(requested, deferred), lambda c: c.id)) FROM new_steps
  UNION
  SELECT trace_id, 'call:' || unnest(list_concat(list_transform(answered, lambda c: c.id), list_transform(approvals, lambda c: c.id)))
  FROM new_steps
  WHERE conversation_id IS NULL
  UNION
  -- runs without any conversation: the same words to the same agent within the hour (see links.sql)
  SELECT trace_id,
    'input:' || md5(concat_ws('|', service, user_text)) || ':' || (start_ns // 3600000000000 + unnest([0, 1]))::VARCHAR
  FROM new_steps
  WHERE user_text IS NOT NULL
)
SELECT key, trace_id FROM keyed WHERE key IS NOT NULL
