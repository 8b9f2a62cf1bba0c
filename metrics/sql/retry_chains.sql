-- Grain: one row per executed call of a tool or a model, with its place in the chain of tries it belongs to.
-- Inputs: tool_calls, interventions.
-- A chain goes on while the last try did not end well, or while the sender counts on (attempt 2, 3, ...). Two model
-- calls of one agent are a chain only after an error.
WITH ordered AS (
  SELECT
    c.*,
    lag(span_id) OVER again AS before_span_id,
    lag(run_id) OVER again AS before_run_id,
    lag(outcome) OVER again AS before_outcome,
    lag(error_kind) OVER again AS before_kind,
    lag(attempt_no) OVER again AS before_no,
    lag(call_id) OVER again AS before_call_id,
    lag(start_ns) OVER again AS before_start_ns,
    lag(last_ns) OVER again AS before_last_ns,
    lag(retry_after_s) OVER again AS before_retry_after_s
  FROM tool_calls c
  WINDOW again AS (PARTITION BY task_id, intent, role, name, same ORDER BY start_ns, span_id)
),
linked AS (
  SELECT
    *,
    -- the client tries again by itself: it counts, or sends the same call of the model once more, or calls the model again
    before_run_id = run_id AND (coalesce(attempt_no > 1, false) OR (role = 'tool' AND call_id = before_call_id) OR role = 'model')
      AS by_client,
    before_span_id IS NOT NULL
      AND ((before_outcome <> 'ok' AND start_ns >= before_last_ns) OR coalesce(attempt_no > coalesce(before_no, 1), false)
           OR (role = 'tool' AND before_outcome = 'ok' AND run_id = before_run_id AND call_id = before_call_id AND start_ns >= before_last_ns)) AS goes_on
  FROM ordered
),
numbered AS (
  SELECT
    *,
    sum(CASE WHEN goes_on THEN 0 ELSE 1 END)
      OVER (PARTITION BY task_id, intent, role, name, same ORDER BY start_ns, span_id) AS chain
  FROM linked
)
SELECT
  'chain-' || left(md5(first_value(trace_id || '/' || span_id) OVER whole), 16) AS chain_id,
  n.* EXCLUDE (chain, arguments, said, told),
  row_number() OVER whole AS place,
  count(*) OVER (PARTITION BY task_id, intent, role, name, same, chain) AS tries,
  CASE WHEN goes_on THEN (start_ns - before_last_ns) / 1e9 END AS wait_s,
  lag(CASE WHEN goes_on AND by_client THEN (start_ns - before_last_ns) / 1e9 END) OVER whole AS earlier_wait_s,
  sum(CASE WHEN coalesce(attempt_no, 1) = 1 THEN 1 ELSE 0 END) OVER whole AS round,
  -- something else was done or said in between: the retry may stand on new ground
  goes_on AND role = 'tool' AND (
    EXISTS (
      SELECT 1 FROM tool_calls o
      WHERE o.task_id = n.task_id AND o.is_side_effect AND o.outcome = 'ok'
        AND o.start_ns >= n.before_start_ns AND o.start_ns < n.start_ns AND o.last_ns <= n.start_ns)
    OR EXISTS (
      SELECT 1 FROM interventions i
      WHERE i.task_id = n.task_id AND i.decided_at > make_timestamp(n.before_start_ns // 1000) AND i.decided_at <= make_timestamp(n.start_ns // 1000))
  ) AS on_new_ground
FROM numbered n
WINDOW whole AS (PARTITION BY task_id, intent, role, name, same, chain ORDER BY start_ns, span_id)
