-- Grain: one row per task, with its outcome.
-- Inputs: run_verdicts, task_runs, task_facts, usage, steps, attempts, executions, actions, tool_classes, interventions, human_waits, uncertain,
--   evaluation_labels, excluded_environments, maintenance_windows, kept_revisions; variable as_of.
-- Evidence in order of strength: stated, evaluated, inferred. Nothing is completed by inference while anything speaks
-- against it; what is not known is unknown.
WITH members AS (
  SELECT t.task_id, t.position, r.*,
    row_number() OVER (PARTITION BY t.task_id ORDER BY r.dropped OR r.only_accepted, t.position DESC) AS from_end,
    row_number() OVER (PARTITION BY t.task_id ORDER BY t.position) AS from_start
  FROM task_runs t
  JOIN run_verdicts r USING (run_id)
),
last_run AS (SELECT * FROM members WHERE from_end = 1),
first_run AS (SELECT * FROM members WHERE from_start = 1),
whole AS (
  SELECT
    task_id,
    count(*) AS runs,
    count(DISTINCT trace_id) AS traces,
    min(start_ns) AS start_ns,
    max(last_ns) AS last_ns,
    min(conversation_id) AS conversation_id,
    max(deadline_s) AS deadline_s,
    arg_max(outcome_stated, position) FILTER (WHERE outcome_stated IS NOT NULL) AS outcome_stated,
    arg_max(claimed, position) FILTER (WHERE claimed IS NOT NULL) AS claimed,
    arg_max(evaluation, position) FILTER (WHERE evaluation IS NOT NULL) AS evaluation,
    sum(model_calls)::BIGINT AS model_calls,
    -- a run that lost its root turns from running to crashed by the clock alone, whatever the task's outcome
    min(quiet_at) FILTER (WHERE quiet_at > getvariable('as_of')) AS next_quiet_at,
    bool_or(verdict IN ('failed', 'aborted') OR (verdict = 'crashed' AND NOT only_accepted)) AS had_trouble,
    bool_or(sampled) AS sampled
  FROM members
  GROUP BY task_id
),
spent AS (
  SELECT
    task_id,
    sum(input_tokens)::BIGINT AS input_tokens,
    sum(output_tokens)::BIGINT AS output_tokens,
    -- summed as decimals: a sum of floats depends on its order, and equal passes must give equal bytes
    sum(cost_usd::DECIMAL(38, 12))::DOUBLE AS cost_usd,
    -- a call that failed before it used anything cost nothing
    bool_and(cost_usd IS NOT NULL OR (status = 'error' AND coalesce(input_tokens, output_tokens) IS NULL)) AS cost_complete
  FROM usage
  GROUP BY task_id
),
calls AS (
  SELECT t.task_id,
    count(*) FILTER (WHERE NOT s.same_tool_above) AS tool_steps,
    -- delivered again, instrumented twice, or a span inside the span of the same call
    (sum(s.deliveries - 1) + count(*) FILTER (WHERE s.same_tool_above))::BIGINT AS extra_spans
  FROM steps s
  JOIN task_runs t USING (run_id)
  WHERE s.role = 'tool'
  GROUP BY t.task_id
),
attempted AS (
  SELECT task_id, count(*) AS attempts, count(*) FILTER (WHERE disposition <> 'pending') AS tool_calls FROM attempts GROUP BY task_id
),
-- a side effect whose last try was refused or is unknown, and no later call of that tool that went well
loose_ends AS (
  SELECT a.task_id, min(a.evidence[-1]) AS span_id, count(*) AS n, bool_or(a.last_outcome <> 'refused') AS perhaps_done
  FROM actions a
  WHERE a.last_outcome <> 'ok' AND NOT EXISTS (
    SELECT 1 FROM attempts t
    WHERE t.task_id = a.task_id AND t.tool = a.tool AND t.outcome = 'ok' AND t.started_at >= a.started_at
      -- another order paid does not make this one paid
      AND is_about(argument_leaves(a.arguments), t.leaves))
  GROUP BY a.task_id
),
-- a side effect asked for in a run that lost its root, with no sign that it was done or done again
unwitnessed AS (
  SELECT t.task_id, min(r.last_model_span_id) AS span_id
  FROM (SELECT run_id, last_model_span_id, root_ended, unnest(pending) AS call FROM run_verdicts) r
  JOIN task_runs t USING (run_id)
  WHERE NOT r.root_ended
    AND NOT EXISTS (SELECT 1 FROM attempts a WHERE a.task_id = t.task_id AND a.tool = r.call.name AND a.outcome = 'ok')
    AND NOT EXISTS (SELECT 1 FROM tool_classes k WHERE k.tool = r.call.name AND coalesce(k.configured_effect, k.guessed_effect) IN ('read', 'control'))
  GROUP BY t.task_id
),
-- the last report of the work to whoever asked for it failed
unreported AS (
  SELECT task_id, min(span_id) AS span_id
  FROM (
    SELECT s.task_id_stated AS task_id, s.name, arg_max(s.span_id, (s.start_ns, s.span_id)) AS span_id
    FROM steps s
    WHERE s.run_id IS NULL AND s.role = 'other' AND s.mark IS NULL AND s.task_id_stated IS NOT NULL
    GROUP BY s.task_id_stated, s.name
    HAVING arg_max(s.status, (s.start_ns, s.span_id)) = 'error'
  )
  GROUP BY task_id
),
-- the agent gave the work to a person, and did nothing to the outside world after it
handed AS (
  SELECT t.task_id, min(e.span_id) AS span_id
  FROM task_runs t
  JOIN last_run l ON l.run_id = t.run_id
  JOIN executions e ON e.run_id = t.run_id
  WHERE e.effect_class = 'escalate' AND e.disposition = 'executed' AND e.outcome = 'ok'
    AND (e.decision = 'took_over' OR (e.hands_over AND e.decision IS NULL))
    AND NOT EXISTS (SELECT 1 FROM executions x WHERE x.run_id = e.run_id AND x.is_side_effect AND x.disposition = 'executed' AND x.start_ns > e.start_ns)
  GROUP BY t.task_id
),
-- the last model call asked for a side effect, no such call is seen, and the run gave an answer all the same, which no model
-- call of its own had given before; a call whose arguments are the answer only gave it its shape
unmade AS (
  SELECT r.run_id, min(r.last_model_span_id) AS span_id
  FROM (SELECT run_id, last_model_span_id, root_output, unnest(pending) AS call FROM run_verdicts WHERE verdict = 'ended' AND root_output IS NOT NULL) r
  JOIN tool_classes k ON k.tool = r.call.name
  WHERE coalesce(k.configured_effect, k.guessed_effect) IN ('write', 'idempotent_write', 'escalate')
    AND NOT coalesce(canonical_arguments(r.root_output) = r.call.arguments, false)
    AND len(argument_leaves(r.call.arguments)) > 0
    AND len(list_filter(argument_leaves(r.call.arguments), lambda v: v = trim(r.root_output) OR (length(v) >= 20 AND contains(r.root_output, v)))) = 0
    AND NOT (starts_with(ltrim(r.root_output), '{') AND len(list_filter(argument_leaves(r.call.arguments), lambda v: NOT contains(r.root_output, v))) = 0)
    AND NOT EXISTS (SELECT 1 FROM steps s WHERE s.run_id = r.run_id AND s.is_model_call AND s.output_text = r.root_output)
  GROUP BY r.run_id
),
-- something was done to the outside world, or a person said that it must not be
acted AS (
  SELECT task_id FROM executions WHERE disposition = 'executed' AND outcome = 'ok' AND effect_class NOT IN ('read', 'control')
  UNION
  SELECT task_id FROM interventions WHERE decision = 'rejected'
  UNION
  SELECT task_id FROM executions WHERE disposition = 'denied'
),
-- a person said yes, and nothing was done
approved AS (
  SELECT i.task_id
  FROM interventions i
  WHERE i.kind = 'approval' AND i.decision IN ('approved', 'edited') AND i.tool IS NOT NULL
    AND NOT EXISTS (
      SELECT 1 FROM attempts a
      WHERE a.task_id = i.task_id AND a.tool = i.tool AND a.disposition = 'executed'
        -- the clocks of two processes differ: what was seen to carry out the decision needs none
        AND (a.ended_at IS NULL OR a.ended_at >= i.requested_at OR list_contains(i.evidence, a.span_id)))
  GROUP BY i.task_id
),
humans AS (
  SELECT i.task_id, i.interventions, i.planned, w.us / 1e6 AS human_wait_s
  FROM (SELECT task_id, count(*) AS interventions, count(*) FILTER (WHERE kind = 'approval') AS planned FROM interventions GROUP BY task_id) i
  LEFT JOIN (SELECT task_id, sum(epoch_us(ended_at) - epoch_us(began_at))::BIGINT AS us FROM human_waits GROUP BY task_id) w USING (task_id)
),
-- the moment at which a side effect that ended unknown has been open for too long
unsettled AS (
  SELECT task_id, min(due_at) AS due_at FROM uncertain WHERE due_at > getvariable('as_of') GROUP BY task_id
),
timed AS (
  SELECT
    w.*, c.* EXCLUDE (task_id), l.run_id AS last_run_id, l.verdict, l.root_ended, l.rule AS run_rule, l.evidence AS run_evidence, l.answered, l.ended_at AS run_ended_at,
    l.last_seen_at, l.human_deadline_s, l.agent AS last_agent,
    f.gate_is_intervention,
    e.label AS evaluated,
    CASE WHEN w.deadline_s IS NOT NULL THEN make_timestamp(w.start_ns // 1000) + to_microseconds((w.deadline_s * 1e6)::BIGINT)
      ELSE make_timestamp(w.last_ns // 1000) + to_seconds(l.rule_deadline_s) END AS deadline_at,
    v.span_id AS handed_span_id,
    p.task_id IS NOT NULL AS approved_open,
    q.span_id AS unreported_span_id,
    um.span_id AS unmade_span_id,
    l.verdict = 'ended' AND ac.task_id IS NULL AND coalesce(w.claimed, '') <> 'success' AND gives_up(coalesce(l.root_output, l.last_model_output)) AS gave_up,
    o.n AS loose, o.span_id AS loose_span_id, x.span_id AS unwitnessed_span_id,
    -- whoever says that it failed is believed, unless what it tried may have been done all the same
    coalesce(w.claimed = 'failure', false) AND NOT coalesce(o.perhaps_done, false) AND x.span_id IS NULL AS says_failed
  FROM whole w
  JOIN task_facts c USING (task_id)
  JOIN last_run l USING (task_id)
  JOIN first_run f USING (task_id)
  LEFT JOIN evaluation_labels e ON e.word = w.evaluation
  LEFT JOIN handed v USING (task_id)
  LEFT JOIN approved p USING (task_id)
  LEFT JOIN loose_ends o USING (task_id)
  LEFT JOIN unwitnessed x USING (task_id)
  LEFT JOIN unreported q USING (task_id)
  LEFT JOIN unmade um ON um.run_id = l.run_id
  LEFT JOIN acted ac ON ac.task_id = w.task_id
),
decided AS (
  SELECT
    *,
    CASE
      WHEN outcome_stated IS NOT NULL THEN outcome_stated
      WHEN verdict IN ('ended', 'failed', 'aborted') AND evaluated = 'pass' THEN 'completed'
      WHEN verdict IN ('ended', 'failed', 'aborted') AND evaluated = 'fail' THEN 'failed'
      WHEN verdict = 'running' THEN 'running'
      WHEN verdict = 'crashed' THEN CASE WHEN getvariable('as_of') >= deadline_at THEN 'lost' ELSE 'running' END
      WHEN verdict = 'paused' THEN
        CASE WHEN human_deadline_s IS NOT NULL AND getvariable('as_of') >= run_ended_at + to_seconds(human_deadline_s) THEN 'lost' ELSE 'waiting_human' END
      WHEN verdict = 'failed' THEN 'failed'
      WHEN verdict = 'aborted' THEN 'unknown'
      WHEN handed_span_id IS NOT NULL THEN 'handed_over'
      WHEN says_failed THEN 'failed'
      WHEN loose > 0 OR unwitnessed_span_id IS NOT NULL OR unreported_span_id IS NOT NULL OR approved_open THEN 'unknown'
      WHEN unmade_span_id IS NOT NULL OR gave_up OR NOT answered THEN 'unknown'
      ELSE 'completed'
    END AS outcome,
    CASE
      WHEN outcome_stated IS NOT NULL THEN 'stated'
      WHEN verdict IN ('ended', 'failed', 'aborted') AND evaluated IS NOT NULL THEN 'evaluated'
      WHEN verdict IN ('running', 'paused') OR (verdict = 'crashed' AND getvariable('as_of') < deadline_at) THEN 'none'
      WHEN verdict = 'aborted' THEN 'none'
      WHEN verdict = 'ended' AND handed_span_id IS NULL
        AND NOT says_failed
        AND (loose > 0 OR unwitnessed_span_id IS NOT NULL OR unreported_span_id IS NOT NULL OR approved_open OR unmade_span_id IS NOT NULL OR gave_up OR NOT answered) THEN 'none'
      ELSE 'inferred'
    END AS outcome_evidence,
    CASE
      WHEN outcome_stated IS NOT NULL THEN 'task.stated'
      WHEN verdict IN ('ended', 'failed', 'aborted') AND evaluated IS NOT NULL THEN 'task.evaluated'
      WHEN verdict = 'crashed' THEN CASE WHEN getvariable('as_of') >= deadline_at THEN 'task.lost.no_terminal_run' ELSE 'task.running.crashed_before_deadline' END
      WHEN verdict = 'paused' THEN
        CASE WHEN human_deadline_s IS NOT NULL AND getvariable('as_of') >= run_ended_at + to_seconds(human_deadline_s) THEN 'task.lost.no_human_answer' ELSE 'task.waiting.' || run_rule END
      WHEN verdict IN ('failed', 'aborted', 'running') THEN 'task.' || run_rule
      WHEN handed_span_id IS NOT NULL THEN 'task.handed_over.to_a_person'
      WHEN says_failed THEN 'task.failed.claimed'
      WHEN loose > 0 THEN 'task.unknown.last_effect_not_ok'
      WHEN unwitnessed_span_id IS NOT NULL THEN 'task.unknown.call_lost_in_crash'
      WHEN unreported_span_id IS NOT NULL THEN 'task.unknown.report_failed'
      WHEN approved_open THEN 'task.unknown.approved_not_executed'
      WHEN unmade_span_id IS NOT NULL THEN 'task.unknown.call_not_made'
      WHEN NOT answered THEN 'task.unknown.no_answer'
      WHEN gave_up THEN 'task.unknown.gave_up'
      ELSE 'task.completed.clean_end'
    END AS rule
  FROM timed
),
ended AS (
  SELECT
    d.*,
    outcome NOT IN ('running', 'waiting_human') AS is_terminal,
    CASE
      WHEN outcome IN ('running', 'waiting_human') THEN NULL
      WHEN outcome = 'lost' AND verdict = 'paused' THEN run_ended_at + to_seconds(human_deadline_s)
      WHEN outcome = 'lost' THEN deadline_at
      ELSE coalesce(run_ended_at, last_seen_at)
    END AS decided_at,
    CASE WHEN outcome NOT IN ('running', 'waiting_human', 'lost') THEN coalesce(run_ended_at, last_seen_at) END AS ended_at,
    CASE
      WHEN d.environment IN (SELECT environment FROM excluded_environments) THEN 'environment:' || d.environment
      WHEN EXISTS (
        SELECT 1 FROM maintenance_windows m
        WHERE d.started_at >= m.window_start AND d.started_at < m.window_end AND coalesce(d.agent, '') GLOB m.agent_glob) THEN 'maintenance'
    END AS excluded_reason
  FROM decided d
)
SELECT
  e.task_id,
  e.task_type, e.agent,
  e.conversation_id, e.service, e.environment,
  e.outcome, e.outcome_evidence, e.claimed,
  -- a planned gate counts, unless the configuration says that it does not
  coalesce(h.interventions - CASE WHEN e.gate_is_intervention THEN 0 ELSE h.planned END, 0) AS interventions,
  coalesce(h.planned, 0) AS planned_interventions,
  CASE WHEN e.outcome = 'completed' THEN coalesce(h.interventions - CASE WHEN e.gate_is_intervention THEN 0 ELSE h.planned END, 0) = 0 END AS autonomous,
  e.is_terminal AND e.excluded_reason IS NULL AS eligible,
  e.excluded_reason,
  e.decided_at,
  least(
    e.next_quiet_at,
    CASE
      WHEN e.outcome = 'running' AND e.deadline_at > getvariable('as_of') THEN e.deadline_at
      WHEN e.outcome = 'waiting_human' AND e.human_deadline_s IS NOT NULL THEN e.run_ended_at + to_seconds(e.human_deadline_s)
    END,
    y.due_at
  ) AS next_due_at,
  false AS frozen,
  (coalesce(c.extra_spans, 0) + greatest(coalesce(c.tool_steps, 0) - coalesce(a.attempts, 0), 0))::BIGINT AS telemetry_duplicates,
  e.app_version,
  e.runs, e.traces, e.model_calls,
  coalesce(a.tool_calls, 0) AS tool_calls,
  u.input_tokens, u.output_tokens, u.cost_usd, coalesce(u.cost_complete AND u.cost_usd IS NOT NULL, false) AS cost_complete,
  e.started_at, e.ended_at,
  epoch(e.ended_at) - epoch(e.started_at) AS wall_s,
  -- greatest() passes over NULL: an open task has no active time yet, not 0
  CASE WHEN e.ended_at IS NOT NULL THEN
    greatest(epoch(e.ended_at) - epoch(e.started_at) - coalesce(h.human_wait_s, 0), 0) END AS active_s,
  coalesce(h.human_wait_s, 0) AS human_wait_s,
  coalesce(k.revision, 0) AS revision,
  e.rule,
  list_distinct(spans_of(list_filter(list_concat(e.run_evidence, [e.loose_span_id, e.unwitnessed_span_id, e.unreported_span_id, e.unmade_span_id, e.handed_span_id]), lambda s: s IS NOT NULL))) AS evidence,
  e.deadline_at,
  e.had_trouble,
  e.sampled,
  e.evaluated
FROM ended e
LEFT JOIN spent u USING (task_id)
LEFT JOIN calls c USING (task_id)
LEFT JOIN attempted a USING (task_id)
LEFT JOIN humans h USING (task_id)
LEFT JOIN kept_revisions k USING (task_id)
LEFT JOIN unsettled y USING (task_id)
