-- Grain: one row per executed call of a tool or a model, with its place in the chain of tries it belongs to.
-- Inputs: tool_calls, interventions.
-- A chain goes on while the last try did not end well, or while the sender counts on (attempt 2, 3, ...). Two model
-- calls of one agent are a chain only after an error.
WITH ordered AS (
  SELECT
    *,
    -- one call before, once for all that is asked of it
    lag(struct_pack(span_id, run_id, outcome, error_kind, attempt_no, call_id, start_ns, last_ns, retry_after_s)) OVER again AS earlier
  FROM tool_calls
  WINDOW again AS (PARTITION BY task_id, intent, role, name, same ORDER BY start_ns, span_id)
),
named AS (
  SELECT
    * EXCLUDE (earlier),
    earlier.span_id AS before_span_id,
    earlier.run_id AS before_run_id,
    earlier.outcome AS before_outcome,
    earlier.error_kind AS before_kind,
    earlier.attempt_no AS before_no,
    earlier.call_id AS before_call_id,
    earlier.start_ns AS before_start_ns,
    earlier.last_ns AS before_last_ns,
    earlier.retry_after_s AS before_retry_after_s,
    -- `call_0` names the first call of every answer
    role = 'tool' AND call_id = earlier.call_id AND NOT counts_only(call_id, name) AS same_id
  FROM ordered
),
linked AS (
  SELECT
    *,
    -- the client tries again by itself: it counts, or sends the same call of the model once more, or calls the model again
    before_run_id = run_id AND (coalesce(attempt_no > 1, false) OR same_id OR role = 'model')
      AS by_client,
    before_span_id IS NOT NULL
      AND ((before_outcome <> 'ok' AND start_ns >= before_last_ns) OR coalesce(attempt_no > coalesce(before_no, 1), false)
           OR (same_id AND before_outcome = 'ok' AND run_id = before_run_id AND start_ns >= before_last_ns)) AS goes_on
  FROM named
),
numbered AS (
  SELECT
    *,
    sum(CASE WHEN goes_on THEN 0 ELSE 1 END)
      OVER (PARTITION BY task_id, intent, role, name, same ORDER BY start_ns, span_id) AS chain
  FROM linked
),
-- something else was done or said in between: the retry may stand on new ground
again AS (
  SELECT * FROM numbered WHERE goes_on AND role = 'tool'
),
moved AS (
  SELECT n.trace_id, n.span_id
  FROM again n
  JOIN tool_calls o
    ON o.task_id = n.task_id AND o.is_side_effect AND o.outcome = 'ok'
    AND o.start_ns >= n.before_start_ns AND o.start_ns < n.start_ns AND o.last_ns <= n.start_ns
  UNION
  SELECT n.trace_id, n.span_id
  FROM again n
  JOIN interventions i
    ON i.task_id = n.task_id AND i.decided_at > make_timestamp(n.before_start_ns // 1000) AND i.decided_at <= make_timestamp(n.start_ns // 1000)
)
SELECT
  'chain-' || left(md5(first_value(n.trace_id || '/' || n.span_id) OVER whole), 16) AS chain_id,
  n.* EXCLUDE (chain, arguments, said, told),
  row_number() OVER whole AS place,
  count(*) OVER (PARTITION BY n.task_id, n.intent, n.role, n.name, n.same, n.chain) AS tries,
  CASE WHEN goes_on THEN (start_ns - before_last_ns) / 1e9 END AS wait_s,
  lag(CASE WHEN goes_on AND by_client THEN (start_ns - before_last_ns) / 1e9 END) OVER whole AS earlier_wait_s,
  sum(CASE WHEN coalesce(attempt_no, 1) = 1 THEN 1 ELSE 0 END) OVER whole AS round,
  m.span_id IS NOT NULL AS on_new_ground
FROM numbered n
LEFT JOIN moved m ON m.trace_id = n.trace_id AND m.span_id = n.span_id
WINDOW whole AS (PARTITION BY n.task_id, n.intent, n.role, n.name, n.same, n.chain ORDER BY n.start_ns, n.span_id)
