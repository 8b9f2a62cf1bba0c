-- Grain: one row per pair of runs of one task (later run, earlier run, rule).
-- Inputs: run_verdicts.
-- In the order of docs/definitions: stated task id; the framework's own run id; a tool call id of both; conversation and
-- evidence of continuation. A conversation alone is no evidence: it can hold many tasks.
WITH r AS (
  SELECT run_id, start_ns, last_ns, root_end_ns, service, environment, agent, conversation_id, invocation_id, task_id_stated, input_id, input_key, trigger,
    verdict, rule, root_ended, open_calls, executed_ids, executed_calls, history, approvals, user_texts, user_id, trace_id, resumes_root
  FROM run_verdicts
),
ordered AS (
  SELECT
    *,
    lag(run_id) OVER (PARTITION BY task_id_stated ORDER BY start_ns, run_id) AS same_task,
    lag(run_id) OVER (PARTITION BY service, invocation_id ORDER BY start_ns, run_id) AS same_invocation,
    lag(run_id) OVER talk AS before,
    last_value(CASE WHEN verdict = 'paused' OR NOT root_ended THEN run_id END IGNORE NULLS)
      OVER (talk ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS open_before,
    lag(run_id) OVER (PARTITION BY conversation_id, IF(conversation_id IS NULL, service, NULL), input_id ORDER BY start_ns, run_id) AS same_delivery
  FROM r
  WINDOW talk AS (PARTITION BY conversation_id ORDER BY start_ns, run_id)
),
-- the user's words, in every spelling a run shows
worded AS (
  SELECT run_id, trace_id, start_ns, last_ns, root_end_ns, service, conversation_id, verdict, root_ended, unnest(user_texts) AS words FROM r
),
repeated AS (
  SELECT
    *,
    lag(CASE WHEN verdict = 'failed' THEN run_id END) OVER same_words_in_trace AS failed_before,
    -- the first run of a trace holds what stands around all its runs as well
    lag(CASE WHEN verdict = 'failed' THEN root_end_ns END) OVER same_words_in_trace AS failed_before_end_ns,
    lag(run_id) OVER same_words AS same_input,
    lag(verdict = 'paused' OR NOT root_ended) OVER same_words AS same_input_open,
    lag(last_ns) OVER same_words AS same_input_last_ns,
    lag(run_id) OVER same_words_anywhere AS repeated_input,
    lag(NOT root_ended) OVER same_words_anywhere AS repeated_input_open,
    lag(last_ns) OVER same_words_anywhere AS repeated_input_last_ns
  FROM worded
  WINDOW
    same_words_in_trace AS (PARTITION BY trace_id, words ORDER BY start_ns, run_id),
    same_words AS (PARTITION BY conversation_id, words ORDER BY start_ns, run_id),
    same_words_anywhere AS (PARTITION BY conversation_id IS NULL, service, words ORDER BY start_ns, run_id)
),
shown AS (
  SELECT run_id, trace_id, start_ns, coalesce(service, '') AS service, conversation_id AS talk, 'open' AS kind, unnest(open_calls) AS call FROM r
  UNION ALL
  SELECT run_id, trace_id, start_ns, coalesce(service, ''), conversation_id, 'executed', unnest(executed_calls) FROM r
  UNION ALL
  SELECT run_id, trace_id, start_ns, coalesce(service, ''), conversation_id, 'history',
    struct_pack(id := unnest(list_concat(list_transform(history, lambda a: a.id), list_transform(approvals, lambda a: a.id))), name := NULL, arguments := NULL)
  FROM r
),
told AS (
  SELECT *, counts_only(call.id, call.name) AS counts_only FROM shown WHERE call.id IS NOT NULL
),
calls AS (
  SELECT * FROM told WHERE kind <> 'history'
),
met AS (
  SELECT * FROM told WHERE kind <> 'open'
),
-- a call left open in the earlier run and met again, or one call id executed in both; histories repeat closed calls.
-- An id like `call_0` counts the calls of one answer (counts_only): by itself it says nothing about two runs, so it needs the conversation, the
-- trace, or to be the very call that the latest run before it left open
same_call AS (
  SELECT m.run_id, c.run_id AS earlier
  FROM calls c
  JOIN met m ON m.call.id = c.call.id AND (c.kind = 'open' OR m.kind = 'executed')
  WHERE NOT c.counts_only AND NOT m.counts_only AND m.run_id <> c.run_id
  UNION
  SELECT m.run_id, c.run_id
  FROM calls c
  JOIN met m ON m.call.id = c.call.id AND m.talk = c.talk AND (c.kind = 'open' OR m.kind = 'executed')
  WHERE c.counts_only AND m.run_id <> c.run_id
  UNION
  SELECT m.run_id, c.run_id
  FROM calls c
  JOIN met m ON m.call.id = c.call.id AND m.trace_id = c.trace_id AND (c.kind = 'open' OR m.kind = 'executed')
  WHERE c.counts_only AND m.run_id <> c.run_id
  UNION
  SELECT run_id, arg_max(earlier, (earlier_ns, earlier))
  FROM (
    SELECT m.run_id, m.call, c.run_id AS earlier, c.start_ns AS earlier_ns
    FROM calls c
    JOIN met m
      ON m.kind = 'executed' AND m.call.id = c.call.id AND m.call.name = c.call.name AND m.service = c.service
      AND m.call.arguments IS NOT DISTINCT FROM c.call.arguments
    WHERE c.counts_only AND c.kind = 'open' AND (c.start_ns, c.run_id) < (m.start_ns, m.run_id)
  )
  GROUP BY run_id, call
),
waiting AS (
  SELECT run_id, conversation_id, start_ns, unnest(open_calls) AS call FROM r WHERE verdict = 'paused' AND conversation_id IS NOT NULL
),
done AS (
  SELECT run_id, conversation_id, start_ns, unnest(executed_calls) AS call FROM r WHERE conversation_id IS NOT NULL
),
links AS (
  SELECT run_id, same_task AS earlier, 'join.stated_task_id' AS rule FROM ordered WHERE task_id_stated IS NOT NULL
  UNION ALL
  SELECT run_id, same_invocation, 'join.invocation_id' FROM ordered WHERE invocation_id IS NOT NULL
  UNION ALL
  SELECT run_id, earlier, 'join.tool_call_id'
  FROM same_call
  UNION ALL
  -- no call ids: in one conversation, the call left open is carried out as it was asked for
  SELECT run_id, earlier, 'join.open_call_executed'
  FROM (
    SELECT d.run_id, arg_max(w.run_id, (w.start_ns, w.run_id)) AS earlier
    FROM waiting w
    JOIN done d
      ON d.conversation_id = w.conversation_id AND d.call.name = w.call.name AND d.call.arguments IS NOT DISTINCT FROM w.call.arguments
      AND (d.start_ns, d.run_id) > (w.start_ns, w.run_id)
    WHERE w.call.id IS NULL OR d.call.id IS NULL
    GROUP BY d.run_id
  )
  UNION ALL
  -- an agent that starts below another which has ended already: the same run, taken up again in its own trace
  SELECT run_id, trace_id || '/' || resumes_root, 'join.resumed_in_trace' FROM r WHERE resumes_root IS NOT NULL
  UNION ALL
  -- a worker that tries again after an error, within the one request that the trace is
  SELECT run_id, failed_before, 'join.retried_in_trace' FROM repeated
  WHERE start_ns BETWEEN failed_before_end_ns AND failed_before_end_ns + 3600000000000
  UNION ALL
  SELECT run_id, coalesce(CASE WHEN trigger = 'resume' THEN open_before END, before), 'join.trigger_' || trigger
  FROM ordered
  WHERE conversation_id IS NOT NULL AND trigger IN ('resume', 'retry', 'redelivery')
  UNION ALL
  -- a question put in words, and the next words of the conversation answer it
  SELECT o.run_id, o.before, 'join.reply_to_question'
  FROM ordered o
  JOIN r b ON b.run_id = o.before
  WHERE o.conversation_id IS NOT NULL AND b.rule = 'run.paused.answer_asks'
    AND len(list_filter(o.user_texts, lambda said: replies(said))) > 0
  UNION ALL
  SELECT run_id, same_delivery, 'join.input_id' FROM ordered WHERE input_id IS NOT NULL AND coalesce(conversation_id, service) IS NOT NULL
  UNION ALL
  SELECT run_id, same_input, 'join.same_input_after_open_run'
  FROM repeated
  WHERE conversation_id IS NOT NULL AND same_input_open AND start_ns >= same_input_last_ns
  UNION ALL
  -- runtimes that export no conversation id: the same words to the same agent within the hour of a run that lost its
  -- root (and with it, in some, the agent's name); never over six in the morning or evening, noon or midnight, UTC: a
  -- schedule whose roots are never sent must not become one task without end
  SELECT run_id, repeated_input, 'join.same_input_after_crash'
  FROM repeated
  WHERE conversation_id IS NULL AND repeated_input_open
    AND start_ns BETWEEN repeated_input_last_ns AND repeated_input_last_ns + 3600000000000
    AND start_ns // 21600000000000 = repeated_input_last_ns // 21600000000000
)
SELECT DISTINCT l.run_id, l.earlier, l.rule
FROM links l
JOIN r b ON b.run_id = l.run_id
JOIN r a ON a.run_id = l.earlier
WHERE a.start_ns <= b.start_ns
  -- what the sender states outranks what we infer
  AND NOT coalesce(a.task_id_stated <> b.task_id_stated, false)
  AND (l.rule IN ('join.stated_task_id', 'join.invocation_id', 'join.resumed_in_trace') OR NOT coalesce(a.conversation_id <> b.conversation_id, false))
  AND (l.rule NOT IN ('join.same_input_after_crash', 'join.same_input_after_open_run', 'join.retried_in_trace') OR NOT coalesce(a.user_id <> b.user_id, false))
  AND (l.rule NOT IN ('join.same_input_after_crash', 'join.retried_in_trace') OR NOT coalesce(a.agent <> b.agent, false))
  -- without a conversation a message id is one of the same agent, user and environment, of the same day and the same words
  AND (l.rule <> 'join.input_id' OR a.conversation_id IS NOT NULL OR (
    NOT is_placeholder(a.input_id)
    AND NOT coalesce(a.agent <> b.agent OR a.user_id <> b.user_id OR a.environment <> b.environment, false)
    AND NOT (len(a.user_texts) > 0 AND len(b.user_texts) > 0 AND NOT list_has_any(a.user_texts, b.user_texts))
    AND b.start_ns - a.last_ns <= 86400000000000))
  -- the same input id is the evidence of a redelivery; two different ones are evidence of two requests
  AND (l.rule NOT IN ('join.same_input_after_open_run', 'join.same_input_after_crash', 'join.retried_in_trace') OR NOT coalesce(a.input_id <> b.input_id, false))
