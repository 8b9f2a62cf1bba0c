-- Grain: one row per decided task and kind of waste: what it cost in model calls.
-- Inputs: tasks, usage, run_steps, attempts, loops, retry_chains.
-- No cent is here twice. A task that failed or was abandoned is waste as a whole, and nothing in it is told again. In any
-- other task a model call is divided equally among the tool calls it asked for, and each share takes the first name that
-- fits: duplicate, loop, retry. A try that the client repeats by itself took no model call and no share. A model call that
-- failed and had to be made again is a retry as a whole.
WITH decided AS (
  SELECT
    task_id, cost_usd, cost_complete,
    CASE
      WHEN outcome IN ('failed', 'dead_letter', 'cancelled_system') THEN 'failed_task'
      WHEN outcome IN ('lost', 'cancelled_user') THEN 'abandoned_task'
    END AS whole
  FROM tasks
  WHERE outcome NOT IN ('running', 'waiting_human')
),
calls AS (
  SELECT u.task_id, u.run_id, coalesce(u.agent, '') AS agent, u.trace_id, u.span_id, u.start_ns, u.status, u.cost_usd
  FROM usage u
  JOIN decided d USING (task_id)
  WHERE d.whole IS NULL AND u.counts_as = 'call'
),
looped AS (
  SELECT DISTINCT task_id, unnest(evidence) AS span_id FROM loops WHERE rule <> 'loop.limit_hit'
),
tools AS (
  SELECT
    a.task_id, a.run_id, coalesce(s.agent, '') AS agent, a.trace_id, a.span_id, a.start_ns,
    CASE
      WHEN a.duplicate IS NOT NULL THEN 'duplicate'
      WHEN l.span_id IS NOT NULL THEN 'loop'
      WHEN r.goes_on THEN 'retry'
    END AS kind
  FROM attempts a
  JOIN run_steps s ON s.trace_id = a.trace_id AND s.span_id = split_part(a.span_id, '.', 1)
  LEFT JOIN looped l ON l.task_id = a.task_id AND l.span_id = a.span_id
  LEFT JOIN retry_chains r ON r.trace_id = a.trace_id AND r.span_id = a.span_id AND r.role = 'tool'
  WHERE NOT coalesce(r.goes_on AND r.by_client, false)
),
-- the model call that asked for it: the last one of the same agent before it
asked AS (
  SELECT t.task_id, t.span_id, t.kind, c.trace_id AS call_trace_id, c.span_id AS call_span_id, c.cost_usd
  FROM tools t
  ASOF JOIN (
    SELECT * FROM calls WHERE status <> 'error' QUALIFY row_number() OVER (PARTITION BY run_id, agent, start_ns ORDER BY trace_id, span_id) = 1
  ) c
    ON c.task_id = t.task_id AND c.run_id = t.run_id AND c.agent = t.agent AND t.start_ns >= c.start_ns
),
shares AS (
  SELECT
    task_id, span_id, kind,
    (cost_usd / count(*) OVER (PARTITION BY call_trace_id, call_span_id))::DECIMAL(38, 12) AS cost_usd
  FROM asked
  UNION ALL
  SELECT task_id, span_id, 'retry', cost_usd::DECIMAL(38, 12) FROM calls WHERE status = 'error' AND cost_usd IS NOT NULL
),
told AS (
  SELECT
    s.task_id, s.kind,
    sum(s.cost_usd)::DOUBLE AS cost_usd,
    count(*) AS calls,
    list(s.span_id ORDER BY s.span_id) AS evidence
  FROM shares s
  WHERE s.kind IS NOT NULL
  GROUP BY s.task_id, s.kind
  UNION ALL
  SELECT d.task_id, d.whole, d.cost_usd, t.model_calls, t.evidence
  FROM decided d
  JOIN tasks t USING (task_id)
  WHERE d.whole IS NOT NULL
)
SELECT
  w.*, t.agent, t.task_type, t.service, t.environment, t.app_version, t.started_at AS task_started_at, t.decided_at, t.excluded_reason
FROM told w
JOIN tasks t USING (task_id)
