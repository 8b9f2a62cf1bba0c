-- Grain: one row per executed call of a tool or of a model: how it ended, and what its error says of trying again.
-- Inputs: executions, steps, task_runs.
-- `same`: what makes two calls the same call. Model calls have no arguments of their own: they are the same by agent.
-- `series`: what their usual time is measured by.
WITH calls AS (
  SELECT
    e.task_id, e.intent, e.run_id, e.trace_id, e.span_id, 'tool' AS role, e.tool AS name, CASE WHEN e.seen_by = 'span' THEN 'tool:' || e.tool END AS series,
    coalesce(e.args_key, e.call_id, e.attempt_id) AS same,
    e.effect_class, e.is_side_effect, e.call_id, e.idempotency_key, e.attempt_no, e.outcome, e.error_class, e.words,
    e.start_ns, e.last_ns, e.end_ns IS NOT NULL AS ended, e.limit_s, e.plan, e.max_attempts,
    e.arguments, coalesce(e.result, e.words) AS said, e.result IS NOT NULL OR e.outcome <> 'ok' AS told
  FROM executions e
  WHERE e.disposition = 'executed'
  UNION ALL BY NAME
  SELECT
    t.task_id, t.intent, s.run_id, s.trace_id, s.span_id, 'model' AS role, coalesce(s.agent, '') AS name, 'model:' || s.model AS series,
    'model' AS same,
    'read' AS effect_class, false AS is_side_effect, NULL::VARCHAR AS call_id, NULL::VARCHAR AS idempotency_key, s.attempt_no,
    CASE WHEN s.status = 'error' AND NOT s.is_interrupt THEN 'refused' ELSE 'ok' END AS outcome,
    s.error_class, concat_ws(' ', s.error_class, s.error_message) AS words,
    s.start_ns, coalesce(s.end_ns, s.start_ns) AS last_ns, s.end_ns IS NOT NULL AS ended, s.timeout_s AS limit_s,
    NULL::VARCHAR AS plan, NULL::INTEGER AS max_attempts,
    NULL::VARCHAR AS arguments, NULL::VARCHAR AS said, false AS told
  FROM steps s
  JOIN task_runs t USING (run_id)
  WHERE s.is_model_call
  UNION ALL BY NAME
  -- a call outside of every run that names the task: the report of the work to whoever asked for it
  SELECT
    s.task_id_stated AS task_id, 0 AS intent, NULL::VARCHAR AS run_id, s.trace_id, s.span_id, 'report' AS role, s.name, NULL::VARCHAR AS series,
    'report' AS same,
    'read' AS effect_class, false AS is_side_effect, NULL::VARCHAR AS call_id, NULL::VARCHAR AS idempotency_key, s.attempt_no,
    CASE WHEN s.status = 'error' THEN 'refused' ELSE 'ok' END AS outcome,
    s.error_class, concat_ws(' ', s.error_class, s.error_message) AS words,
    s.start_ns, coalesce(s.end_ns, s.start_ns) AS last_ns, s.end_ns IS NOT NULL AS ended, NULL::DOUBLE AS limit_s,
    NULL::VARCHAR AS plan, NULL::INTEGER AS max_attempts,
    NULL::VARCHAR AS arguments, NULL::VARCHAR AS said, false AS told
  FROM steps s
  WHERE s.run_id IS NULL AND s.role = 'other' AND s.mark IS NULL AND s.task_id_stated IN (SELECT task_id FROM task_runs)
)
SELECT
  c.*,
  CASE WHEN c.outcome <> 'ok' THEN
    retry_class(c.error_class, c.words)
  END AS error_kind,
  -- "Retry-After: 30", "try again in 2 s"
  CASE WHEN c.outcome <> 'ok' THEN
    try_cast(nullif(regexp_extract(lower(c.words), '(?:retry.?after|try again in)[^0-9]{0,3}([0-9]+(?:\.[0-9]+)?)', 1), '') AS DOUBLE)
    * CASE WHEN regexp_matches(lower(c.words), '(?:retry.?after|try again in)[^0-9]{0,3}[0-9.]+ ?m(in|\b)') THEN 60
           WHEN regexp_matches(lower(c.words), '(?:retry.?after|try again in)[^0-9]{0,3}[0-9.]+ ?ms') THEN 0.001 ELSE 1 END
  END AS retry_after_s
FROM calls c
