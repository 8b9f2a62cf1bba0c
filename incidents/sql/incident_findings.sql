-- Grain: one row per finding, with the parts of its structural fingerprint and the moment it happened.
-- Inputs: findings, tasks, runs, attempts, steps.
-- Structure only: never arguments, ids or words, so that a thousand customers with one fault are one incident.
WITH faulty AS (
  SELECT DISTINCT task_id FROM findings
),
calls AS (
  SELECT a.*
  FROM attempts a
  SEMI JOIN faulty f ON f.task_id = a.task_id
),
seen AS (
  SELECT f.finding_id, f.place, a.*
  FROM (SELECT finding_id, task_id, unnest(evidence) AS span_id, generate_subscripts(evidence, 1) AS place FROM findings) f
  JOIN calls a ON a.task_id = f.task_id AND a.span_id = f.span_id
),
-- the call that is wrong leads the evidence; the fault that led there is the first call that did not go well
told AS (
  SELECT
    finding_id,
    arg_min(tool, place) AS tool,
    arg_min(cause, place) AS cause,
    arg_min(started_at, place) AS happened_at,
    arg_min(outcome, (started_at, attempt_id)) FILTER (WHERE outcome <> 'ok') AS bad_outcome,
    arg_min(error_class, (started_at, attempt_id)) FILTER (WHERE outcome = 'refused') AS error_class
  FROM seen
  GROUP BY finding_id
),
-- the tools up to there in the order of their first call: a repeat, a cycle and a longer loop have one shape
shapes AS (
  SELECT finding_id, list(tool ORDER BY first_at, tool) AS shape
  FROM (
    SELECT f.finding_id, c.tool, min(c.started_at) AS first_at
    FROM findings f
    JOIN calls c ON c.task_id = f.task_id
    LEFT JOIN told o ON o.finding_id = f.finding_id
    WHERE c.disposition = 'executed' AND c.started_at <= coalesce(o.happened_at, c.started_at)
    GROUP BY f.finding_id, c.tool)
  GROUP BY finding_id
),
-- a call that has no span of its own is named by the finding, and by the model that asked for it
asked AS (
  SELECT DISTINCT s.task_id, unnest(s.requested).name AS tool
  FROM steps s
  SEMI JOIN faulty f ON f.task_id = s.task_id
  WHERE len(s.requested) > 0
),
named AS (
  SELECT f.finding_id, min(a.tool) AS tool
  FROM findings f
  JOIN asked a ON a.task_id = f.task_id AND starts_with(f.detail, a.tool || ': ')
  GROUP BY f.finding_id
),
crashed AS (
  SELECT DISTINCT task_id FROM runs WHERE verdict = 'crashed'
),
-- a case can be made of a task whose input and arguments were captured
captured AS (
  SELECT
    t.task_id,
    bool_or(s.user_text IS NOT NULL) FILTER (WHERE s.role IN ('agent', 'workflow', 'model'))
      AND coalesce(bool_and(s.arguments IS NOT NULL) FILTER (WHERE s.role = 'tool'), true) AS complete
  FROM faulty t
  JOIN steps s ON s.task_id = t.task_id
  GROUP BY t.task_id
),
parts AS (
  SELECT
    f.finding_id, f.task_id, f.kind, f.severity, f.rule,
    coalesce(t.agent, '') AS agent,
    f.kind || coalesce('.' || CASE WHEN f.kind = 'duplicate_action' THEN o.cause END, '') AS mode,
    coalesce(o.tool, n.tool, '') AS tool,
    CASE
      WHEN o.bad_outcome = 'unknown' THEN 'timeout'
      WHEN o.bad_outcome IS NOT NULL THEN 'error'
      WHEN c.task_id IS NOT NULL THEN 'crash'
      ELSE 'none'
    END AS fault,
    coalesce(o.error_class, '') AS error,
    coalesce(s.shape, []) AS shape,
    coalesce(o.happened_at, t.decided_at, t.started_at) AS happened_at,
    coalesce(p.complete, false) AS complete
  FROM findings f
  JOIN tasks t USING (task_id)
  LEFT JOIN told o USING (finding_id)
  LEFT JOIN named n USING (finding_id)
  LEFT JOIN shapes s USING (finding_id)
  LEFT JOIN crashed c USING (task_id)
  LEFT JOIN captured p USING (task_id)
)
SELECT
  finding_id, task_id, kind, mode, severity, rule, agent, tool, fault, error, shape, happened_at, complete,
  left(sha256(to_json([agent, mode, tool, fault, error, to_json(shape)::VARCHAR])::VARCHAR), 16) AS fingerprint
FROM parts
