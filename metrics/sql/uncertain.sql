-- Grain: one row per executed side-effecting attempt that ended unknown: did anyone ever settle whether it happened?
-- Inputs: executions, repeats, compensations, detector_limits.
-- Settled by a look at the same thing, by an answer under the same key (or of a tool that may be repeated), or by being
-- undone. Another unkeyed try settles nothing: it may be the second effect.
WITH open AS (
  SELECT * FROM executions WHERE is_side_effect AND disposition = 'executed' AND outcome = 'unknown'
),
settling AS (
  SELECT o.attempt_id, r.last_ns AS settled_ns, r.span_id, 'settled.status_read' AS rule
  FROM open o
  JOIN executions r
    ON r.task_id = o.task_id AND r.effect_class = 'read' AND r.disposition = 'executed' AND r.outcome = 'ok'
    AND r.start_ns >= o.last_ns AND list_has_any(r.leaves, o.leaves)
  UNION ALL
  SELECT o.attempt_id, a.last_ns, a.span_id, 'settled.same_key'
  FROM open o
  JOIN executions a
    ON a.task_id = o.task_id AND a.tool = o.tool AND a.disposition = 'executed' AND a.outcome = 'ok' AND a.args_key = o.args_key
    AND (a.start_ns, a.attempt_id) > (o.start_ns, o.attempt_id)
    AND (a.idempotency_key = o.idempotency_key OR a.effect_class = 'idempotent_write')
  UNION ALL
  SELECT o.attempt_id, c.undone_ns, c.by_span_id, 'settled.undone'
  FROM open o
  JOIN compensations c USING (attempt_id)
)
SELECT
  o.attempt_id, o.task_id, o.tool, o.span_id, o.last_ns,
  make_timestamp(o.last_ns // 1000) + to_seconds(d.settle_s) AS due_at,
  min(make_timestamp(s.settled_ns // 1000)) AS settled_at,
  arg_min(s.rule, (s.settled_ns, s.span_id)) AS rule,
  arg_min(s.span_id, (s.settled_ns, s.span_id)) AS by_span_id
FROM open o
CROSS JOIN detector_limits d
LEFT JOIN settling s USING (attempt_id)
GROUP BY o.attempt_id, o.task_id, o.tool, o.span_id, o.last_ns, d.settle_s
