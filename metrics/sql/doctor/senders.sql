-- Grain: one row per sender: a service and the instrumentation scope and version by which it speaks.
-- Inputs: views steps, runs, attempts, tasks.
-- What was understood of a sender's spans, counted; lacks.sql says what is missing.
WITH own AS (
  SELECT
    coalesce(s.service, '') AS service, coalesce(s.scope, '') AS scope, coalesce(s.scope_version, '') AS version, s.emitter,
    s.*
  FROM steps s
),
agents AS (
  SELECT coalesce(s.service, '') AS service, coalesce(s.scope, '') AS scope, coalesce(s.scope_version, '') AS version,
    count(DISTINCT r.run_id) AS runs,
    count(DISTINCT r.run_id) FILTER (WHERE r.verdict = 'crashed') AS crashed_runs,
    count(DISTINCT r.run_id) FILTER (WHERE r.conversation_id IS NULL) AS runs_without_conversation
  FROM runs r
  JOIN steps s ON s.run_id = r.run_id
  WHERE s.span_id = r.root_span_id OR r.root_span_id IS NULL
  GROUP BY ALL
),
acts AS (
  SELECT coalesce(s.service, '') AS service, coalesce(s.scope, '') AS scope, coalesce(s.scope_version, '') AS version,
    list(DISTINCT a.tool ORDER BY a.tool) FILTER (WHERE a.effect_class = 'unknown') AS unclassed_tools,
    list(DISTINCT a.tool ORDER BY a.tool) FILTER (WHERE a.class_source = 'guessed' AND a.effect_class IN ('write', 'idempotent_write')) AS guessed_writes,
    count(*) FILTER (WHERE a.action_id IS NOT NULL) AS side_effects,
    count(*) FILTER (WHERE a.action_id IS NOT NULL AND a.idempotency_key IS NULL) AS side_effects_without_key,
    count(*) FILTER (WHERE a.seen_by = 'messages') AS calls_from_messages
  FROM attempts a
  JOIN steps s ON s.trace_id = a.trace_id AND s.span_id = split_part(a.span_id, '.', 1)
  GROUP BY ALL
),
outcomes AS (
  SELECT coalesce(s.service, '') AS service, coalesce(s.scope, '') AS scope, coalesce(s.scope_version, '') AS version,
    count(DISTINCT t.task_id) AS tasks,
    count(DISTINCT t.task_id) FILTER (WHERE t.outcome = 'unknown') AS unknown_tasks,
    count(DISTINCT t.task_id) FILTER (WHERE t.outcome_evidence IN ('stated', 'evaluated')) AS verified_tasks
  FROM steps s
  JOIN tasks t USING (task_id)
  WHERE s.role <> 'other'
  GROUP BY ALL
)
SELECT
  o.service, o.scope, o.version, any_value(o.emitter) AS family,
  count(*) AS spans,
  make_timestamp(min(o.start_ns) // 1000) AS first_seen,
  make_timestamp(max(o.start_ns) // 1000) AS last_seen,
  count(*) FILTER (WHERE o.role IN ('agent', 'workflow')) AS agent_spans,
  count(*) FILTER (WHERE o.is_model_call) AS model_calls,
  count(*) FILTER (WHERE o.role = 'tool') AS tool_calls,
  -- their run has no root: the span above them never came
  count(*) FILTER (WHERE (o.is_model_call OR o.role = 'tool') AND o.run_id LIKE '%/fragment') AS orphaned_calls,
  count(*) FILTER (WHERE o.role = 'other' AND coalesce(o.mark, 'accepted') = 'accepted') AS other_spans,
  count(*) FILTER (WHERE o.mark = 'start_marker') AS start_markers,
  count(*) FILTER (WHERE o.sampled) AS sampled_spans,
  count(*) FILTER (WHERE o.is_model_call AND coalesce(o.input_tokens, o.output_tokens) IS NOT NULL) AS calls_with_tokens,
  count(*) FILTER (WHERE o.is_model_call AND o.cost_usd IS NOT NULL) AS calls_with_cost,
  count(*) FILTER (WHERE o.is_model_call AND (o.output_text IS NOT NULL OR len(o.requested) > 0)) AS calls_with_content,
  count(*) FILTER (WHERE o.is_model_call AND o.finish_reason IS NOT NULL) AS calls_with_finish,
  count(*) FILTER (WHERE o.role = 'tool' AND o.tool IS NOT NULL) AS named_tools,
  count(*) FILTER (WHERE o.role = 'tool' AND o.arguments IS NOT NULL) AS tools_with_arguments,
  count(*) FILTER (WHERE o.role = 'tool' AND (o.result IS NOT NULL OR o.status = 'error')) AS tools_with_result,
  count(*) FILTER (WHERE o.role = 'tool' AND o.call_id IS NOT NULL) AS tools_with_call_id,
  list_distinct(flatten(list(o.misstated) FILTER (WHERE len(o.misstated) > 0))) AS misstated,
  count(*) FILTER (WHERE o.app_version IS NOT NULL) AS spans_with_app_version,
  count(*) FILTER (WHERE o.environment IS NOT NULL) AS spans_with_environment,
  coalesce(any_value(a.runs), 0) AS runs,
  coalesce(any_value(a.crashed_runs), 0) AS crashed_runs,
  coalesce(any_value(a.runs_without_conversation), 0) AS runs_without_conversation,
  coalesce(any_value(c.unclassed_tools), []) AS unclassed_tools,
  coalesce(any_value(c.guessed_writes), []) AS guessed_writes,
  coalesce(any_value(c.side_effects), 0) AS side_effects,
  coalesce(any_value(c.side_effects_without_key), 0) AS side_effects_without_key,
  coalesce(any_value(c.calls_from_messages), 0) AS calls_from_messages,
  coalesce(any_value(t.tasks), 0) AS tasks,
  coalesce(any_value(t.unknown_tasks), 0) AS unknown_tasks,
  coalesce(any_value(t.verified_tasks), 0) AS verified_tasks
FROM own o
LEFT JOIN agents a USING (service, scope, version)
LEFT JOIN acts c USING (service, scope, version)
LEFT JOIN outcomes t USING (service, scope, version)
GROUP BY o.service, o.scope, o.version
ORDER BY o.service, o.scope, o.version
