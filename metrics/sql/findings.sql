-- Grain: one row per violation in one task, with rule and evidence.
-- Inputs: tasks, attempts, executions, actions, kept_findings; variable as_of.
WITH found AS (
  SELECT
    task_id, 'duplicate_action' AS kind, attempt_id AS subject,
    tool || ': ' || cause || ', effect ' || effect || CASE WHEN compensated THEN ', compensated' ELSE '' END AS detail,
    CASE WHEN compensated THEN 'medium' ELSE 'high' END AS severity, rule, evidence
  FROM attempts
  WHERE duplicate = 'unprotected'
  UNION ALL
  SELECT task_id, 'key_not_honoured', attempt_id, tool || ': the receiver did both under one idempotency key', 'high', rule, evidence
  FROM attempts
  WHERE rule = 'duplicate.key_not_honoured'
  UNION ALL
  SELECT
    x.task_id, 'key_reused', x.attempt_id, x.tool || ': one idempotency key for two different calls', 'medium', 'key.reused',
    [y.span_id, x.span_id]
  FROM executions x
  JOIN executions y
    ON y.task_id = x.task_id AND y.tool = x.tool AND y.idempotency_key = x.idempotency_key
    AND (y.args_key <> x.args_key OR y.intent <> x.intent) AND (y.start_ns, y.attempt_id) < (x.start_ns, x.attempt_id)
  WHERE x.is_side_effect AND x.disposition = 'executed' AND y.disposition = 'executed'
  QUALIFY row_number() OVER (PARTITION BY x.attempt_id ORDER BY y.start_ns DESC, y.attempt_id DESC) = 1
  UNION ALL
  SELECT task_id, 'lost', task_id, 'no terminal run at the deadline', 'high', rule, evidence FROM tasks WHERE outcome = 'lost'
  UNION ALL
  SELECT task_id, 'dead_letter', task_id, 'parked after its retries were exhausted', 'high', rule, evidence FROM tasks WHERE outcome = 'dead_letter'
  UNION ALL
  SELECT task_id, 'uncertain_outcome', action_id, tool || ': ended unknown and nothing has settled it', 'high', 'action.unsettled', evidence
  FROM actions
  WHERE NOT settled
)
SELECT
  'finding-' || left(md5(concat_ws('|', f.kind, f.subject)), 16) AS finding_id,
  f.task_id, f.kind, f.detail, f.severity, f.rule, f.evidence,
  coalesce(k.found_at, getvariable('as_of')) AS found_at
FROM found f
LEFT JOIN kept_findings k ON k.finding_id = 'finding-' || left(md5(concat_ws('|', f.kind, f.subject)), 16)
