-- Grain: one row per tool call that no span shows and the messages do: asked for by a model, and answered to it.
-- Inputs: run_steps, task_runs.
-- Function: plain_result.
-- Where only the model's client is instrumented, an application's tools send no spans. What a later model call was given as
-- the answer to a call is the evidence that it was carried out. Only in tasks without a single tool step: where some tools
-- send spans, one that sends none may as well not have run.
-- `span_id`: the step that asked, a dot, and which of its calls it is. The call ran after that step, and before the next
-- model call of the run began: its own times are not known.
WITH talk AS (
  SELECT
    t.task_id, s.run_id, s.trace_id, s.span_id, s.role, s.is_model_call, s.service, s.scope, s.emitter, s.agent, s.conversation_id,
    s.start_ns, coalesce(s.end_ns, s.start_ns) AS last_ns, s.requested, s.answered
  FROM run_steps s
  JOIN task_runs t USING (run_id)
  WHERE t.task_id NOT IN (SELECT t.task_id FROM run_steps x JOIN task_runs t USING (run_id) WHERE x.role = 'tool')
),
-- an agent's own output may repeat what its models asked for
asked AS (
  SELECT *
  FROM (SELECT *, generate_subscripts(requested, 1) AS place, unnest(requested) AS call FROM talk WHERE len(requested) > 0)
  WHERE call.name IS NOT NULL
  QUALIFY is_model_call OR NOT bool_or(is_model_call) OVER (PARTITION BY run_id)
),
-- an id that only counts, or none, says nothing beyond its run: there the first answer is the first call's
asked_in_order AS (
  SELECT *, row_number() OVER (PARTITION BY within, coalesce(call.id, '') ORDER BY start_ns, span_id, place) AS nth
  FROM (SELECT *, CASE WHEN counts_only(coalesce(call.id, ''), call.name) THEN run_id ELSE task_id END AS within FROM asked)
),
-- a history repeats what was answered before: of each run, the last to hold one holds all
answered AS (
  SELECT task_id, run_id, span_id, last_ns, generate_subscripts(answered, 1) AS place, unnest(answered) AS answer
  FROM (SELECT * FROM talk WHERE len(answered) > 0 QUALIFY row_number() OVER (PARTITION BY run_id ORDER BY last_ns DESC, start_ns, span_id) = 1)
),
answers AS (
  SELECT *, row_number() OVER (PARTITION BY within, coalesce(answer.id, '') ORDER BY last_ns, span_id, place) AS nth
  FROM (
    SELECT run_id AS within, * FROM answered
    UNION ALL
    SELECT task_id, * FROM answered
  )
),
starts AS (
  SELECT run_id, start_ns FROM talk WHERE is_model_call GROUP BY run_id, start_ns
),
met AS (
  SELECT a.*, w.answer.text AS result, w.last_ns AS answered_ns, a.last_ns AS after_ns
  FROM asked_in_order a
  JOIN answers w ON w.within = a.within AND coalesce(w.answer.id, '') = coalesce(a.call.id, '') AND w.nth = a.nth AND w.last_ns >= a.last_ns
)
SELECT
  m.task_id, m.run_id, m.trace_id, m.span_id || '.' || m.place AS span_id, m.span_id AS asked_by, m.service, m.scope, m.emitter, m.agent, m.conversation_id,
  m.call.name AS tool, m.call.id AS call_id, m.call.arguments AS arguments,
  coalesce(m.plain.text, m.result) AS result,
  -- one after the other, in the order asked for
  CASE WHEN m.is_model_call THEN m.after_ns ELSE m.start_ns END + m.place - 1 AS start_ns,
  greatest(CASE WHEN m.is_model_call THEN m.after_ns ELSE m.start_ns END + m.place - 1, coalesce(n.start_ns, m.answered_ns)) AS end_ns
FROM (SELECT *, CASE WHEN starts_with(result, '{') OR starts_with(result, '[') THEN plain_result(result) END AS plain FROM met) m
ASOF LEFT JOIN starts n ON n.run_id = m.run_id AND m.after_ns <= n.start_ns
