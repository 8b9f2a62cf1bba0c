-- Grain: one row per violation in one task, with rule and evidence.
-- Inputs: attempts, executions, actions, tasks, retry_faults, loops, approvals, claims, plans, saga, time_limits, dead_letters,
--   costly_tasks, kept_findings; variable as_of.
-- `subject` is what the finding is about within its task; a finding keeps its id, and with it the moment it was first
-- seen, as long as kind and subject stay.
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
  SELECT task_id, 'dead_letter', task_id, detail, 'high', rule, evidence FROM dead_letters
  UNION ALL
  SELECT task_id, 'uncertain_outcome', action_id, tool || ': ended unknown and nothing has settled it', 'high', 'action.unsettled', open_span_ids
  FROM actions
  WHERE NOT settled
  UNION ALL
  SELECT task_id, kind, chain_id, detail,
    CASE WHEN kind IN ('blind_retry', 'unbounded', 'amplification', 'synchronised') THEN 'high' ELSE 'medium' END, rule, evidence
  FROM retry_faults
  UNION ALL
  SELECT task_id, 'loop', subject, detail, 'medium', rule, evidence FROM loops
  UNION ALL
  SELECT task_id, kind, subject, detail, 'high', rule, evidence FROM approvals
  UNION ALL
  SELECT task_id, kind, task_id, detail, 'high', rule, evidence FROM claims
  UNION ALL
  SELECT task_id, 'plan_not_kept', chain_id, tool || ': failed, and its declared plan (' || plan || ') was not carried out', 'high', 'plan.not_kept', [span_id]
  FROM plans
  WHERE NOT kept
  UNION ALL
  SELECT g.task_id, 'not_compensated', g.task_id,
    (g.effects - g.undone) || ' of ' || g.effects || ' effects of the failed task are still there: ' || g.left_by,
    -- a check that fails the whole work does not say that its effects are wrong
    CASE WHEN t.outcome_evidence = 'evaluated' THEN 'low' ELSE 'high' END, 'saga.effects_left', g.evidence
  FROM saga g
  JOIN tasks t USING (task_id)
  WHERE g.undone < g.effects
  UNION ALL
  SELECT task_id, 'hung_call', subject,
    CASE WHEN role = 'model' THEN 'model call' ELSE name END
      || CASE WHEN rule = 'time_limit.never_closed' THEN ': asked for and never closed' ELSE printf(': took %.1f s, limit %.1f s', took_s, limit_s) END,
    'medium', rule, evidence
  FROM time_limits
  WHERE over
  UNION ALL
  SELECT task_id, 'runaway_cost', task_id, printf('cost %.2f USD, usual are %.4f USD', cost_usd, usual_usd), 'high', 'cost.above_baseline', evidence
  FROM costly_tasks
)
SELECT
  'finding-' || left(md5(concat_ws('|', f.kind, f.subject)), 16) AS finding_id,
  f.task_id, f.kind, f.detail, f.severity, f.rule, spans_of(f.evidence) AS evidence,
  coalesce(k.found_at, getvariable('as_of')) AS found_at
FROM found f
LEFT JOIN kept_findings k ON k.finding_id = 'finding-' || left(md5(concat_ws('|', f.kind, f.subject)), 16)
