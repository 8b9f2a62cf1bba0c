-- Grain: one row per executed side-effecting attempt that repeats an earlier one, with the earlier one it is held against.
-- Inputs: executions.
-- Steps 5 to 8 of the decision in docs/definitions (duplicate action).
-- An attempt is held against the eight before it of the same arguments and the 64 before it of the same tool that ended
-- unknown, so a loop of thousands stays linear; what was refused is no earlier attempt of anything.
-- Pairs are narrow: what is long is looked at once the pair is found.
WITH effects AS (
  SELECT
    *,
    row_number() OVER tool_order AS place,
    count(*) FILTER (WHERE outcome <> 'refused') OVER (equal_order ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
  FROM executions
  WHERE is_side_effect AND disposition = 'executed'
  WINDOW
    tool_order AS (PARTITION BY task_id, intent, tool ORDER BY start_ns, attempt_id),
    equal_order AS (PARTITION BY task_id, intent, tool, args_key ORDER BY start_ns, attempt_id)
),
found AS (
  -- of the same arguments
  SELECT x.attempt_id, y.attempt_id AS earlier_id
  FROM effects x
  JOIN (SELECT task_id, intent, tool, args_key, attempt_id, before, unnest([before // 8, before // 8 + 1]) AS reach FROM effects WHERE outcome <> 'refused') y
    ON y.task_id = x.task_id AND y.intent = x.intent AND y.tool = x.tool AND y.args_key = x.args_key AND y.reach = x.before // 8
    AND y.before < x.before AND x.before - y.before <= 8
  UNION
  -- the same but for prose, after one whose end nobody knows
  SELECT x.attempt_id, y.attempt_id
  FROM effects x
  JOIN (SELECT task_id, intent, tool, loose_key, attempt_id, place, unnest([place // 64, place // 64 + 1]) AS reach FROM effects WHERE outcome = 'unknown') y
    ON y.task_id = x.task_id AND y.intent = x.intent AND y.tool = x.tool AND y.loose_key = x.loose_key AND y.reach = x.place // 64
    AND y.place < x.place AND x.place - y.place <= 64
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
      ELSE 'same_but_for_prose'
    END AS identity
  FROM found f
  JOIN effects x ON x.attempt_id = f.attempt_id
  JOIN effects y ON y.attempt_id = f.earlier_id
),
-- for every word that an attempt names: when it was last written with other arguments
written AS (
  SELECT
    *,
    last_value(CASE WHEN outcome <> 'refused' THEN args_key END IGNORE NULLS) OVER before AS last_key,
    last_value(CASE WHEN outcome <> 'refused' THEN start_ns END IGNORE NULLS) OVER before AS last_ns
  FROM (
    SELECT task_id, attempt_id, args_key, outcome, start_ns, unnest(leaves) AS word
    FROM effects
    WHERE task_id IN (SELECT task_id FROM effects WHERE effect_class = 'idempotent_write')
  )
  WINDOW before AS (PARTITION BY task_id, word ORDER BY start_ns, attempt_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
),
barriers AS (
  SELECT attempt_id, max(other_ns) AS barrier_ns
  FROM (
    SELECT
      attempt_id,
      coalesce(
        CASE WHEN last_key <> args_key THEN last_ns END,
        last_value(CASE WHEN outcome <> 'refused' AND last_key <> args_key THEN last_ns END IGNORE NULLS)
          OVER (PARTITION BY task_id, word ORDER BY start_ns, attempt_id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)) AS other_ns
    FROM written
  )
  GROUP BY attempt_id
),
held AS (
  SELECT
    p.*,
    row_number() OVER (PARTITION BY attempt_id ORDER BY earlier_start_ns DESC, earlier_id DESC) AS nearness,
    first_value(earlier_args_key) OVER (PARTITION BY attempt_id ORDER BY earlier_start_ns, earlier_id) AS action_args_key
  FROM pairs p
  LEFT JOIN barriers b USING (attempt_id)
  -- a repeat that was refused itself did nothing, unless it was refused because the key was known
  WHERE (outcome <> 'refused' OR coalesce(same_key, false))
    -- empty arguments and results that name different states: a toggle
    AND NOT (arguments = '{}' AND outcome = 'ok' AND earlier_outcome = 'ok' AND coalesce(result <> earlier_result, false))
    -- a set-like write is new again once another write changed the same thing in between
    AND NOT (effect_class = 'idempotent_write' AND coalesce(b.barrier_ns > p.earlier_start_ns, false))
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
