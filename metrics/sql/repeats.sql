-- Grain: one row per executed side-effecting attempt that repeats an earlier one, with the earlier one it is held against.
-- Inputs: executions, run_verdicts.
-- Steps 5 to 8 and 10 of the decision in docs/definitions (duplicate action).
WITH effects AS (
  SELECT * FROM executions WHERE is_side_effect AND disposition = 'executed'
),
pairs AS (
  SELECT
    x.attempt_id, x.run_id, x.tool, x.effect_class, x.arguments, x.attempt_no, x.start_ns, x.result, x.outcome, x.entities, x.leaves,
    x.args_key, x.idempotency_key, x.call_id, x.window_s, x.key_ttl_s, x.task_id,
    y.attempt_id AS earlier_id, y.span_id AS earlier_span_id, y.run_id AS earlier_run_id, y.outcome AS earlier_outcome,
    y.start_ns AS earlier_start_ns, y.last_ns AS earlier_last_ns, y.result AS earlier_result, y.entities AS earlier_entities,
    y.args_key AS earlier_args_key, y.idempotency_key AS earlier_key,
    x.idempotency_key = y.idempotency_key AS same_key,
    CASE
      WHEN x.idempotency_key = y.idempotency_key AND x.args_key = y.args_key THEN 'same_key'
      WHEN x.args_key = y.args_key THEN 'same_arguments'
      WHEN y.outcome = 'unknown' AND x.loose_key = y.loose_key THEN 'same_but_for_prose'
    END AS identity
  FROM effects x
  JOIN effects y
    ON y.task_id = x.task_id AND y.intent = x.intent AND y.tool = x.tool
    AND (y.start_ns, y.attempt_id) < (x.start_ns, x.attempt_id)
    AND (x.args_key = y.args_key OR (y.outcome = 'unknown' AND x.loose_key = y.loose_key))
),
held AS (
  SELECT
    p.*,
    row_number() OVER (PARTITION BY attempt_id ORDER BY earlier_start_ns DESC, earlier_id DESC) AS nearness,
    first_value(earlier_args_key) OVER (PARTITION BY attempt_id ORDER BY earlier_start_ns, earlier_id) AS action_args_key
  FROM pairs p
  -- after a refusal nothing has happened: a repeat of that is a retry, never a duplicate
  WHERE earlier_outcome <> 'refused'
    -- empty arguments and results that name different states: a toggle
    AND NOT (arguments = '{}' AND outcome = 'ok' AND earlier_outcome = 'ok' AND coalesce(result <> earlier_result, false))
    -- a set-like write is new again once another write changed the same thing in between
    AND NOT (effect_class = 'idempotent_write' AND EXISTS (
      SELECT 1 FROM effects z
      WHERE z.task_id = p.task_id AND z.start_ns > p.earlier_start_ns AND z.start_ns < p.start_ns
        AND z.args_key <> p.args_key AND z.outcome <> 'refused' AND list_has_any(z.leaves, p.leaves)))
),
graded AS (
  SELECT
    h.*,
    CASE
      WHEN effect_class = 'idempotent_write' THEN 'none'
      WHEN outcome <> 'ok' OR earlier_outcome <> 'ok' THEN 'possible'
      -- the same answer naming the same new entity (letters and digits, or a long number; a count of 1 names nothing)
      WHEN result = earlier_result AND len(list_filter(entities, lambda w: regexp_matches(w, '^(.*[A-Za-z].*|\d{4,})$') AND length(w) > 2)) > 0 THEN 'none'
      WHEN list_has_any(entities, earlier_entities) THEN 'possible'
      WHEN len(entities) > 0 AND len(earlier_entities) > 0 THEN 'proven'
      ELSE 'possible'
    END AS effect,
    coalesce(same_key, false) AND identity = 'same_key'
      AND (key_ttl_s IS NULL OR start_ns - earlier_start_ns <= key_ttl_s * 1e9) AS keyed
  FROM held h
  WHERE nearness = 1
)
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
           WHEN g.attempt_no > 1 THEN 'orchestrator_retry'
           ELSE 'model_repeat' END
    WHEN x.trigger = 'resume' THEN 'resume_reexecution'
    WHEN x.trigger = 'retry' THEN 'orchestrator_retry'
    WHEN x.trigger = 'redelivery' THEN 'redelivery'
    WHEN NOT y.root_ended THEN 'crash_replay'
    WHEN y.verdict = 'paused' THEN 'resume_reexecution'
    WHEN x.input_id = y.input_id AND (y.root_end_ns > x.start_ns OR y.verdict = 'failed') THEN 'orchestrator_retry'
    WHEN x.input_id = y.input_id THEN 'redelivery'
    WHEN y.verdict = 'failed' THEN 'orchestrator_retry'
    ELSE 'unknown'
  END AS cause,
  -- a repeat long after the tool's window may be meant: shown, with lower confidence
  g.start_ns - g.earlier_start_ns > g.window_s * 1e9 AS beyond_window
FROM graded g
JOIN run_verdicts x ON x.run_id = g.run_id
JOIN run_verdicts y ON y.run_id = g.earlier_run_id
