-- Grain: one row per (key, trace_id, gate): everything by which a trace could belong to the same task as another.
-- Inputs: new_steps.
-- Wider than the joins of links.sql on purpose: it only decides what has to be looked at again together.
-- A key with a gate leads to others only once some trace holds the gate itself: among runs of the same words, or of calls
-- whose ids only count, it takes one that was left open to join any. Without gates a schedule that says the same words
-- every minute would have all its runs decided again with each new one.
WITH roots AS (
  SELECT trace_id, run_root, bool_or(span_id = run_root AND end_ns IS NOT NULL) AS ended,
    bool_or(conversation_id IS NOT NULL) AS in_conversation,
    arg_max(requested, (start_ns, span_id)) FILTER (WHERE is_model_call) AS last_requested,
    max(start_ns) FILTER (WHERE is_model_call) AS last_model_ns,
    list(DISTINCT call_id) FILTER (WHERE role = 'tool' AND call_id IS NOT NULL) AS answered_ids,
    bool_or(len(deferred) > 0) AS defers
  FROM new_steps
  WHERE run_root IS NOT NULL
  GROUP BY trace_id, run_root
),
captured AS (SELECT DISTINCT trace_id FROM new_steps WHERE role = 'tool' AND result IS NOT NULL),
-- a tool step that may be the half of a call that waits for a person (see run_facts.sql)
halves AS (
  SELECT DISTINCT s.trace_id
  FROM new_steps s
  JOIN roots r ON r.trace_id = s.trace_id AND r.run_root = s.run_root
  WHERE s.role = 'tool'
    AND (s.is_interrupt OR says_pause(s.result)
      OR (s.result IS NULL AND s.status <> 'error' AND (s.start_ns >= coalesce(r.last_model_ns, 0) OR s.trace_id IN (SELECT trace_id FROM captured))))
),
traces AS (
  SELECT r.trace_id, bool_and(r.ended) AS ended,
    NOT bool_and(r.ended) OR bool_or(r.defers) OR bool_or(h.trace_id IS NOT NULL)
      OR bool_or(len(list_filter(r.last_requested, lambda c: NOT coalesce(list_contains(r.answered_ids, c.id), false))) > 0) AS leaves_open
  FROM roots r
  LEFT JOIN halves h ON h.trace_id = r.trace_id
  GROUP BY r.trace_id
),
calls AS (
  SELECT trace_id, service, call_id AS id, tool, arguments FROM new_steps WHERE role = 'tool' AND call_id IS NOT NULL
  UNION
  SELECT trace_id, service, call.id, call.name, call.arguments
  FROM (SELECT trace_id, service, unnest(list_concat(requested, deferred)) AS call FROM new_steps)
  WHERE call.id IS NOT NULL
),
-- what only an open trace can join: found under `key` by whoever looks there, looked for by an ended trace behind the gate
gated AS (
  -- an id that counts: the very same call of the same service
  SELECT c.trace_id, 'counted:' || md5(concat_ws('|', c.service, c.id, c.tool, c.arguments)) AS key, t.leaves_open AS open
  FROM calls c
  JOIN traces t USING (trace_id)
  WHERE counts_only(c.id, c.tool)
  UNION
  -- runs without any conversation: the same words to the same agent within the hour (see links.sql)
  SELECT s.trace_id,
    'input:' || md5(concat_ws('|', s.service, s.user_text)) || ':' || (s.start_ns // 3600000000000 + unnest([0, 1]))::VARCHAR,
    NOT t.ended
  FROM new_steps s
  JOIN roots r ON r.trace_id = s.trace_id AND r.run_root = s.run_root
  JOIN traces t ON t.trace_id = s.trace_id
  WHERE s.user_text IS NOT NULL AND NOT r.in_conversation
),
keyed AS (
  SELECT trace_id, 'task:' || task_id_stated AS key, NULL AS gate FROM new_steps WHERE task_id_stated IS NOT NULL
  UNION
  SELECT trace_id, 'invocation:' || invocation_id, NULL FROM new_steps WHERE invocation_id IS NOT NULL
  UNION
  SELECT trace_id, 'conversation:' || conversation_id, NULL FROM new_steps WHERE conversation_id IS NOT NULL
  UNION
  -- where no conversation is known, one service is delivered one message
  SELECT trace_id, 'delivery:' || md5(concat_ws('|', service, input_id)), NULL FROM new_steps
  -- those that links.sql may join: a placeholder would have all its traces decided again with each new one
  WHERE input_id IS NOT NULL AND NOT is_placeholder(input_id) AND service IS NOT NULL
  UNION
  SELECT trace_id, 'call:' || id, NULL FROM calls WHERE NOT counts_only(id, tool)
  UNION
  SELECT trace_id, 'call:' || id, NULL
  FROM (
    SELECT trace_id, unnest(list_concat(list_transform(answered, lambda c: c.id), list_transform(approvals, lambda c: c.id))) AS id
    FROM new_steps
    WHERE conversation_id IS NULL
  )
  WHERE id IS NOT NULL AND NOT counts_only(id, NULL)
  UNION
  SELECT trace_id, key, CASE WHEN NOT open THEN 'open:' || key END FROM gated
  UNION
  SELECT trace_id, 'open:' || key, NULL FROM gated WHERE open
)
SELECT key, trace_id, gate FROM keyed
