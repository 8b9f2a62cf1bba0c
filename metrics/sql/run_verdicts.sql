-- Grain: one row per run, with its verdict.
-- Inputs: run_facts; variable as_of.
-- Order matters: a pause that says so comes before an error (an interrupt often has the status of one), an error before
-- a pause that is only inferred (a step limit leaves a tool call open as well).
WITH judged AS (
  SELECT
    *,
    coalesce(trigger_stated, CASE WHEN len(approvals) > 0 THEN 'resume' END) AS trigger,
    -- a stated result of the root, else the last model's answer; with content capture off, tokens and a stop-class finish
    -- an answer that was cut off, or a runtime's word in place of one, is none
    coalesce(NOT says_nothing(coalesce(root_output, last_model_output)), true) AND coalesce((root_output IS NOT NULL AND NOT (coalesce(last_model_finish = 'length', false) AND coalesce(contains(root_output, last_model_output), true)))
      OR (last_model_output IS NOT NULL AND coalesce(last_model_finish, 'stop') = 'stop' AND len(pending) = 0 AND coalesce(last_tool_ns, 0) < last_model_ns)
      OR (last_model_output_tokens > 0 AND last_model_finish = 'stop' AND NOT last_model_said_nothing)
      OR (last_model_span_id IS NULL AND root_output_tokens > 0 AND root_finish = 'stop'), false) AS answered,
    CASE
      WHEN only_accepted THEN
        CASE WHEN getvariable('as_of') < make_timestamp(last_ns // 1000) + to_seconds(quiet_s) THEN 'running' ELSE 'crashed' END
      -- some runtimes export no root for a run that raised: then the last thing seen is the error that ended it
      WHEN NOT root_ended THEN
        CASE WHEN getvariable('as_of') < make_timestamp(last_ns // 1000) + to_seconds(quiet_s) THEN 'running'
             WHEN ends_on_error THEN 'failed'
             ELSE 'crashed' END
      WHEN root_finish = 'interrupt' OR last_model_finish = 'interrupt' THEN 'paused'
      WHEN says_pause OR len(deferred) > 0 THEN 'paused'
      WHEN root_error OR last_model_error OR agent_error_span_id IS NOT NULL THEN 'failed'
      WHEN last_model_finish = 'error' THEN 'failed'
      WHEN len(pending) > 0 AND answer_says_pause THEN 'paused'
      WHEN has_agent_root AND (len(pending) > 0 OR len(halves) > 0) AND root_output IS NULL THEN 'paused'
      WHEN asked_for_a_tool THEN 'paused'
      WHEN has_agent_root AND NOT wrote AND asks_to_confirm(coalesce(root_output, last_model_output)) THEN 'paused'
      WHEN last_model_empty THEN 'aborted'
      ELSE 'ended'
    END AS verdict,
    CASE
      WHEN only_accepted THEN 'run.accepted_never_begun'
      WHEN NOT root_ended AND ends_on_error THEN 'run.failed.ends_on_an_error'
      WHEN NOT has_root THEN 'run.no_root'
      WHEN NOT root_ended THEN 'run.root_never_ended'
      WHEN root_finish = 'interrupt' OR last_model_finish = 'interrupt' THEN 'run.paused.finish_reason'
      WHEN says_pause THEN 'run.paused.tool_says_so'
      WHEN len(deferred) > 0 THEN 'run.paused.deferred_calls'
      WHEN root_error THEN 'run.failed.root_error'
      WHEN last_model_error THEN 'run.failed.last_model_error'
      WHEN agent_error_span_id IS NOT NULL THEN 'run.failed.agent_error'
      WHEN last_model_finish = 'error' THEN 'run.failed.finish_reason'
      WHEN len(pending) > 0 AND answer_says_pause THEN 'run.paused.answer_says_so'
      WHEN has_agent_root AND len(pending) > 0 AND root_output IS NULL THEN 'run.paused.call_left_open'
      WHEN has_agent_root AND len(halves) > 0 AND root_output IS NULL THEN 'run.paused.call_without_result'
      WHEN asked_for_a_tool THEN 'run.paused.asked_for_a_tool'
      WHEN has_agent_root AND NOT wrote AND asks_to_confirm(coalesce(root_output, last_model_output)) THEN 'run.paused.answer_asks'
      WHEN last_model_empty THEN 'run.aborted.empty_model_call'
      ELSE 'run.ended'
    END AS rule
  FROM (
    SELECT
      *,
      last_model_error AND coalesce(last_tool_ns, 0) < last_model_start_ns AS ends_on_error,
      -- without content the call itself is not seen, only that the last word of the model was to ask for one
      coalesce(has_agent_root AND last_model_finish = 'tools' AND coalesce(last_tool_ns, 0) < last_model_start_ns AND root_output IS NULL
        AND NOT all_came_back, false)
        AS asked_for_a_tool
    FROM run_facts
  )
)
SELECT
  *,
  -- a model call alone in its trace that asked for a tool: the answer, if there is one, is in another trace
  CASE WHEN verdict = 'paused' OR NOT root_ended OR (NOT has_agent_root AND len(pending) > 0) THEN list_distinct(list_concat(deferred, halves, pending)) ELSE [] END AS open_calls,
  list_filter(
    list_concat([root_span_id, last_model_span_id, agent_error_span_id, CASE WHEN coalesce(root_span_id, last_model_span_id) IS NULL THEN last_span_id END], half_span_ids),
    lambda s: s IS NOT NULL) AS evidence,
  make_timestamp(start_ns // 1000) AS started_at,
  CASE WHEN root_ended AND NOT only_accepted THEN make_timestamp(root_end_ns // 1000) END AS ended_at,
  make_timestamp(last_ns // 1000) AS last_seen_at,
  CASE WHEN NOT root_ended OR only_accepted THEN make_timestamp(last_ns // 1000) + to_seconds(quiet_s) END AS quiet_at,
  coalesce(input_id, md5(user_text)) AS input_key
FROM judged
