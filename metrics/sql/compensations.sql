-- Grain: one row per (attempt, later attempt that undoes it) of one task: the first that does, and for each that undoes the
-- last it can be meant for.
-- Inputs: executions.
-- Step 9 of the decision in docs/definitions: an inverse action that a rule names, that states what it undoes, or whose
-- arguments name the entity that the earlier attempt made.
-- Attempts meet by the words they name, one word and tool at a time, so that thousands of equal calls stay linear.
WITH effects AS (
  SELECT * FROM executions WHERE is_side_effect AND disposition = 'executed'
),
undoers AS (
  SELECT task_id, kind, tool, word, start_ns, min(attempt_id) AS attempt_id
  FROM (
    SELECT task_id, 'compensation.stated' AS kind, tool, compensates AS word, start_ns, attempt_id FROM effects WHERE outcome = 'ok' AND compensates IS NOT NULL
    UNION ALL
    SELECT task_id, 'compensation.names_the_entity', tool, unnest(leaves), start_ns, attempt_id FROM effects WHERE outcome = 'ok' AND is_inverse
    UNION ALL
    SELECT task_id, 'compensation.configured_pair', tool, unnest(leaves), start_ns, attempt_id
    FROM effects
    WHERE outcome = 'ok'
      AND task_id IN (SELECT task_id FROM effects WHERE len(compensated_by) > 0)
  )
  GROUP BY ALL
),
undone AS (
  SELECT DISTINCT task_id, kind, tool, word, start_ns, attempt_id, compensated_by
  FROM (
    SELECT task_id, 'compensation.stated' AS kind, tool, unnest(list_concat([idempotency_key, call_id], entities)) AS word, start_ns, attempt_id, compensated_by
    FROM effects WHERE outcome <> 'refused'
    UNION ALL
    SELECT task_id, 'compensation.names_the_entity', tool, unnest(entities), start_ns, attempt_id, compensated_by FROM effects WHERE outcome <> 'refused'
    UNION ALL
    SELECT task_id, 'compensation.configured_pair', tool, unnest(list_concat(leaves, entities)), start_ns, attempt_id, compensated_by
    FROM effects WHERE outcome <> 'refused' AND len(compensated_by) > 0
  )
  WHERE word IS NOT NULL
),
-- for every word of an attempt, the tools that could undo it
meetings AS (
  SELECT u.task_id, u.kind, u.word, o.tool AS by_tool, u.start_ns, u.attempt_id
  FROM undone u
  JOIN (SELECT DISTINCT task_id, kind, word, tool FROM undoers) o ON o.task_id = u.task_id AND o.kind = u.kind AND o.word = u.word
  WHERE CASE u.kind
    WHEN 'compensation.names_the_entity' THEN o.tool <> u.tool
    WHEN 'compensation.configured_pair' THEN len(list_filter(u.compensated_by, lambda undoer: o.tool GLOB undoer)) > 0
    ELSE true
  END
),
found AS (
  SELECT m.attempt_id, z.attempt_id AS by_attempt, m.kind
  FROM meetings m
  ASOF JOIN undoers z ON z.task_id = m.task_id AND z.kind = m.kind AND z.word = m.word AND z.tool = m.by_tool AND z.start_ns > m.start_ns
  UNION
  SELECT m.attempt_id, z.attempt_id, m.kind
  FROM undoers z
  ASOF JOIN (SELECT task_id, kind, word, by_tool, start_ns, max(attempt_id) AS attempt_id FROM meetings GROUP BY ALL) m
    ON m.task_id = z.task_id AND m.kind = z.kind AND m.word = z.word AND m.by_tool = z.tool AND m.start_ns < z.start_ns
)
SELECT
  z.task_id, f.attempt_id, f.by_attempt, z.span_id AS by_span_id, z.last_ns AS undone_ns,
  arg_min(f.kind, list_position(['compensation.stated', 'compensation.names_the_entity', 'compensation.configured_pair'], f.kind)) AS rule
FROM found f
JOIN effects z ON z.attempt_id = f.by_attempt
GROUP BY z.task_id, f.attempt_id, f.by_attempt, z.span_id, z.last_ns
