-- Grain: one row per executed side-effecting attempt that repeats an earlier one: what protected it, and why it came about.
-- Inputs: repeat_pairs, started_again, run_verdicts.
-- Steps 5 and 10 of the decision in docs/definitions (duplicate action).
SELECT
  g.attempt_id, g.earlier_id, g.earlier_span_id, g.action_args_key, g.identity, g.effect,
  CASE
    WHEN g.keyed AND g.effect = 'proven' THEN 'unprotected'
    WHEN g.keyed THEN 'protected'
    WHEN g.effect = 'none' THEN 'no_op'
    ELSE 'unprotected'
  END AS duplicate,
  CASE
    WHEN g.keyed AND g.effect = 'proven' THEN 'duplicate.key_not_honoured'
    WHEN g.keyed THEN 'duplicate.protected_by_key'
    WHEN g.effect = 'none' AND g.effect_class = 'idempotent_write' THEN 'duplicate.no_op.idempotent_tool'
    WHEN g.effect = 'none' THEN 'duplicate.no_op.same_entity'
    WHEN coalesce(g.same_key, false) AND g.identity = 'same_key' THEN 'duplicate.key_expired'
    ELSE 'duplicate.' || g.identity
  END AS rule,
  CASE
    WHEN g.run_id = g.earlier_run_id THEN
      CASE WHEN g.earlier_outcome = 'unknown' THEN 'retry_after_timeout'
           WHEN g.attempt_no > 1 OR a.attempt_id IS NOT NULL THEN 'orchestrator_retry'
           ELSE 'model_repeat' END
    WHEN x.trigger = 'resume' THEN 'resume_reexecution'
    WHEN x.trigger = 'retry' THEN 'orchestrator_retry'
    WHEN x.trigger = 'redelivery' THEN 'redelivery'
    WHEN NOT y.root_ended THEN 'crash_replay'
    WHEN y.verdict = 'paused' THEN 'resume_reexecution'
    -- the same input again: the platform runs a call again that still runs, or work that failed; else it was delivered again
    WHEN x.input_id = y.input_id AND (g.earlier_last_ns > x.start_ns OR y.verdict = 'failed') THEN 'orchestrator_retry'
    WHEN x.input_id = y.input_id THEN 'redelivery'
    WHEN y.verdict = 'failed' THEN 'orchestrator_retry'
    ELSE 'unknown'
  END AS cause,
  -- a repeat long after the tool's window may be meant: shown, with lower confidence
  g.start_ns - g.earlier_start_ns > g.window_s * 1e9 AS beyond_window
FROM repeat_pairs g
JOIN run_verdicts x ON x.run_id = g.run_id
JOIN run_verdicts y ON y.run_id = g.earlier_run_id
LEFT JOIN started_again a ON a.attempt_id = g.attempt_id
