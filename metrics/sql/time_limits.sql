-- Grain: one row per tool or model call with a known time limit, or requested and never closed.
-- Inputs: tool_calls, run_verdicts, task_runs, tool_classes, baselines, detector_limits.
-- The limit: stated by the caller, else configured, else a multiple of the usual p99 of the days before (never below a
-- floor: ten times a few milliseconds is no hang). A twentieth above it still counts as kept: a client that enforces 30 s
-- ends its call at 30.0 s and a little.
WITH limited AS (
  SELECT
    c.task_id, c.trace_id || '/' || c.span_id AS subject, c.role, c.name, c.span_id, c.last_ns,
    (c.last_ns - c.start_ns) / 1e9 AS took_s,
    coalesce(c.limit_s, greatest(b.value * d.hung_multiple, d.hung_floor_s)) AS limit_s,
    CASE WHEN c.limit_s IS NOT NULL THEN 'time_limit.stated_or_configured' ELSE 'time_limit.baseline' END AS rule
  FROM tool_calls c
  CROSS JOIN detector_limits d
  LEFT JOIN baselines b
    ON b.series = c.series AND b.day = make_timestamp(c.start_ns // 1000)::DATE
  WHERE c.ended AND coalesce(c.limit_s, b.value) IS NOT NULL
),
never_closed AS (
  SELECT t.task_id, r.run_id, r.last_model_span_id AS span_id, r.quiet_at, unnest(r.pending) AS call
  FROM run_verdicts r
  JOIN task_runs t USING (run_id)
  WHERE r.verdict = 'crashed'
)
SELECT
  task_id, subject, role, name, [span_id] AS evidence, make_timestamp(last_ns // 1000) AS ended_at, took_s, limit_s,
  took_s > limit_s * 1.05 AS over,
  rule
FROM limited
UNION ALL
SELECT task_id, run_id || '/' || coalesce(call.id, call.name), 'tool', call.name, [span_id], quiet_at, NULL, k.timeout_s, true,
  'time_limit.never_closed'
FROM never_closed n
LEFT JOIN tool_classes k ON k.tool = n.call.name
