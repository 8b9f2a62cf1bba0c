-- Grain: one row per repeat inside one run whose enclosing span was started a second time.
-- Inputs: repeat_pairs, steps.
-- An orchestrator that runs a part of a run again leaves two spans of one name under one parent, one after the other, and
-- no model call between them that could have asked for the second. The turns of an agent's loop (spans of no role of
-- their own) are no such parts: the model call that asked for the second stands inside the second turn.
WITH RECURSIVE wanted AS (
  SELECT DISTINCT p.attempt_id AS pair, s.trace_id, s.span_id, s.parent_span_id, s.name, s.role, s.start_ns, s.end_ns, side.later, s.start_ns AS call_ns
  FROM repeat_pairs p
  CROSS JOIN (SELECT unnest([true, false]) AS later) side
  JOIN steps s ON s.trace_id || '/' || s.span_id = CASE WHEN side.later THEN p.attempt_id ELSE p.earlier_id END
  WHERE p.run_id = p.earlier_run_id
),
up AS (
  SELECT *, 0 AS height FROM wanted
  UNION ALL
  SELECT u.pair, s.trace_id, s.span_id, s.parent_span_id, s.name, s.role, s.start_ns, s.end_ns, u.later, u.call_ns, u.height + 1
  FROM up u
  JOIN steps s ON s.trace_id = u.trace_id AND s.span_id = u.parent_span_id
  WHERE u.height < 64
)
SELECT DISTINCT a.pair AS attempt_id
FROM up a
JOIN up b ON b.pair = a.pair AND NOT b.later
WHERE a.later AND a.height > 0 AND b.height > 0 AND a.span_id <> b.span_id AND a.parent_span_id = b.parent_span_id
  AND a.name = b.name AND b.end_ns <= a.start_ns
  AND NOT EXISTS (
    SELECT 1 FROM steps m
    WHERE m.trace_id = a.trace_id AND m.is_model_call AND m.start_ns >= b.end_ns
      AND m.start_ns < CASE WHEN a.role = 'other' THEN a.call_ns ELSE a.start_ns END)
