-- Grain: one row per executed side-effecting attempt that repeats an earlier one, with the earlier one it is held against.
-- Inputs: executions.
-- Steps 5 to 8 of the decision in docs/definitions (duplicate action).
-- An attempt is held against the 64 before it of the same tool and intent: a loop of thousands stays linear.
WITH effects AS (
  SELECT *, row_number() OVER (PARTITION BY task_id, intent, tool ORDER BY start_ns, attempt_id) AS place
  FROM executions
  WHERE is_side_effect AND disposition = 'executed'
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
  JOIN (SELECT *, unnest([place // 64, place // 64 + 1]) AS reach FROM effects) y
    ON y.task_id = x.task_id AND y.intent = x.intent AND y.tool = x.tool AND y.reach = x.place // 64
    AND y.place < x.place AND x.place - y.place <= 64
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
    -- and a repeat that was refused itself did nothing, unless it was refused because the key was known
    AND (outcome <> 'refused' OR coalesce(same_key, false))
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
SELECT * FROM graded
