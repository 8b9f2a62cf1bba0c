-- Grain: one row per tool step, telemetry duplicates removed, or call that only messages show: was it executed, what kind
-- of tool is it, how did it end.
-- Inputs: steps, witnessed, run_verdicts, task_runs, tool_classes.
-- Steps 1 to 4 of the decision in docs/definitions (duplicate action).
-- Where a session of many requests is one run and its log tells each of them, each opens an intent of its own.
WITH requests AS (
  SELECT trace_id, span_id, greatest(asked - 1, 0) * 1000000 AS later
  FROM (
    SELECT trace_id, span_id, role,
      count(*) FILTER (WHERE mark = 'input') OVER (PARTITION BY run_id ORDER BY start_ns, mark = 'input' DESC NULLS LAST, span_id) AS asked
    FROM steps
    WHERE role = 'tool' OR mark = 'input'
  )
  WHERE role = 'tool' AND asked > 1
),
calls AS (
  SELECT
    s.* EXCLUDE (task_id), t.task_id, t.intent + coalesce(q.later, 0) AS intent, t.position AS run_position, r.verdict AS run_verdict, r.dropped AS run_dropped, r.half_span_ids,
    'span' AS seen_by,
    -- equal call id, tool, arguments, start and end under another span id: the same call, instrumented twice
    CASE WHEN s.call_id IS NULL THEN 1
      ELSE row_number() OVER (PARTITION BY s.trace_id, s.call_id, s.tool, s.arguments, s.start_ns, s.end_ns ORDER BY s.span_id) END AS copy
  FROM steps s
  JOIN task_runs t USING (run_id)
  JOIN run_verdicts r USING (run_id)
  LEFT JOIN requests q ON q.trace_id = s.trace_id AND q.span_id = s.span_id
  WHERE s.role = 'tool' AND s.tool IS NOT NULL AND NOT s.same_tool_above
  UNION ALL BY NAME
  SELECT
    w.trace_id, w.span_id, w.run_id, w.tool, w.call_id, w.arguments, w.result, w.start_ns, w.end_ns, 'unset' AS status, false AS is_interrupt,
    w.task_id, t.intent, t.position AS run_position, r.verdict AS run_verdict, r.dropped AS run_dropped, r.half_span_ids, 'messages' AS seen_by, 1 AS copy
  FROM witnessed w
  JOIN task_runs t USING (run_id)
  JOIN run_verdicts r USING (run_id)
),
told AS (
  SELECT
    c.*,
    coalesce(k.configured_effect, c.effect_stated, k.guessed_effect, 'unknown') AS effect_class,
    CASE WHEN k.configured_effect IS NOT NULL THEN 'configured'
         WHEN c.effect_stated IS NOT NULL THEN 'stated'
         WHEN k.guessed_effect IS NOT NULL THEN 'guessed'
         ELSE 'unknown' END AS class_source,
    k.is_inverse, k.hands_over, k.key_fields, k.compensated_by, k.window_s, k.key_ttl_s, k.max_attempts,
    -- what the caller says of this call stands before what is configured for the tool
    -- a call that only messages show took no longer than the time between two model calls: no limit is held against that
    CASE WHEN c.seen_by = 'span' THEN coalesce(c.timeout_s, k.timeout_s) END AS limit_s,
    coalesce(c.on_failure, k.on_failure) AS plan,
    concat_ws(' ', c.error_class, c.error_message, left(c.result, 300)) AS words
  FROM calls c
  JOIN tool_classes k USING (tool)
  WHERE c.copy = 1
)
SELECT
  trace_id || '/' || span_id AS attempt_id,
  span_id, trace_id, run_id, task_id, intent, run_position, seen_by, tool, effect_class, class_source, is_inverse, hands_over,
  effect_class IN ('write', 'idempotent_write') AS is_side_effect,
  arguments, coalesce(idempotency_key, key_argument(arguments)) AS idempotency_key, call_id, attempt_no, result, error_class, decision, decision_arguments, compensates, level, required_level,
  compensated_by, window_s, key_ttl_s, max_attempts, limit_s, plan, words,
  start_ns, coalesce(end_ns, start_ns) AS last_ns, end_ns,
  CASE
    WHEN disposition_stated IS NOT NULL THEN disposition_stated
    WHEN run_dropped THEN 'dropped'
    WHEN decision = 'rejected' THEN 'denied'
    WHEN says_denied(concat_ws(' ', error_class, error_message)) OR is_denial(result) THEN 'denied'
    WHEN is_interrupt OR says_pause(result) THEN 'pending'
    WHEN run_verdict = 'paused' AND list_contains(half_span_ids, span_id) THEN 'pending'
    ELSE 'executed'
  END AS disposition,
  CASE
    WHEN status = 'error' THEN
      outcome_of(words)
    WHEN end_ns IS NULL THEN 'unknown'
    -- what was configured says so outright; an answer that only begins like an error may tell of a timeout
    WHEN says_refused(result) THEN 'refused'
    WHEN says_unknown(IF(starts_with(result, '{'), result, unquoted(result))) THEN 'unknown'
    WHEN says_error(result) THEN outcome_of_error_text(left(result, 300))
    WHEN effect_class NOT IN ('read', 'control') AND says_perhaps_done(left(result, 2000)) THEN 'unknown'
    WHEN effect_class NOT IN ('read', 'control') AND says_not_done(left(result, 2000)) AND NOT says_done(left(result, 2000)) THEN outcome_of_error_text(left(result, 300))
    ELSE 'ok'
  END AS outcome,
  -- what makes two calls the same action: the configured key fields, else all arguments
  CASE
    WHEN arguments IS NULL THEN NULL
    WHEN len(key_fields) > 0 AND len(list_filter(list_transform(key_fields, lambda f: json_extract(arguments, '$."' || f || '"')), lambda v: v IS NOT NULL)) > 0
      THEN md5(concat_ws('|', tool, list_transform(key_fields, lambda f: json_extract(arguments, '$."' || f || '"'))::VARCHAR))
    -- a key among them says how often it may be done, not what
    WHEN key_argument(arguments) IS NOT NULL THEN md5(concat_ws('|', tool, without_key(arguments)))
    ELSE md5(concat_ws('|', tool, arguments))
  END AS args_key,
  CASE WHEN effect_class IN ('write', 'idempotent_write') THEN md5(concat_ws('|', tool, without_free_text(arguments))) END AS loose_key,
  argument_leaves(arguments) AS leaves,
  -- what the result names that the arguments did not: entity ids, counters, balances
  CASE WHEN effect_class IN ('write', 'idempotent_write') THEN result_entities(result, arguments) ELSE []::VARCHAR[] END AS entities
FROM told
