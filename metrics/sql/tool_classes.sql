-- Grain: one row per tool name seen or asked for in the touched tasks: what configuration says of it and what its name suggests.
-- Inputs: run_steps, tool_rules, verbs, escalation_words, handover_words, control_words, inverse_verbs.
WITH tools AS (
  SELECT tool FROM run_steps WHERE role = 'tool' AND tool IS NOT NULL
  UNION
  SELECT call.name FROM (SELECT unnest(list_concat(requested, deferred)) AS call FROM run_steps) WHERE call.name IS NOT NULL
),
split AS (
  SELECT tool, string_split_regex(lower(regexp_replace(tool, '([a-z0-9])([A-Z])', '\1_\2', 'g')), '[^a-z0-9]+') AS words FROM tools
),
worded AS (
  SELECT tool, unnest(words) AS word, generate_subscripts(words, 1) AS place FROM split
),
guessed AS (
  SELECT
    w.tool,
    arg_min(v.effect, w.place) FILTER (WHERE NOT v.weak) AS strong,
    arg_min(v.effect, w.place) FILTER (WHERE v.weak) AS weak,
    -- `find_and_book_flight` does both
    bool_or(w.word IN ('and', 'then')) AND bool_or(coalesce(v.effect = 'write', false)) AS writes_as_well,
    bool_or(e.word IS NOT NULL) AS names_a_person,
    bool_or(h.word IS NOT NULL) AS hands_over,
    bool_or(c.kind = 'verb') AND bool_or(c.kind = 'word') AS is_control,
    bool_or(i.word IS NOT NULL) AS is_inverse
  FROM worded w
  LEFT JOIN verbs v ON v.word = w.word
  LEFT JOIN escalation_words e ON e.word = w.word
  LEFT JOIN handover_words h ON h.word = w.word
  LEFT JOIN control_words c ON c.word = w.word
  LEFT JOIN inverse_verbs i ON i.word = w.word
  GROUP BY w.tool
)
SELECT
  g.tool,
  r.effect AS configured_effect,
  CASE
    WHEN g.is_control THEN 'control'
    WHEN g.names_a_person AND coalesce(g.strong, '') <> 'read' THEN 'escalate'
    WHEN g.writes_as_well THEN 'write'
    ELSE coalesce(g.strong, g.weak)
  END AS guessed_effect,
  coalesce(g.is_inverse, false) AS is_inverse,
  coalesce(g.hands_over, false) AS hands_over,
  coalesce(r.key_fields, []) AS key_fields,
  coalesce(r.compensated_by, []) AS compensated_by,
  coalesce(r.window_s, 86400) AS window_s,
  r.key_ttl_s, r.timeout_s, r.on_failure, r.max_attempts
FROM guessed g
LEFT JOIN LATERAL (
  SELECT * FROM tool_rules r WHERE g.tool GLOB r.tool_glob ORDER BY r.position LIMIT 1
) r ON true
