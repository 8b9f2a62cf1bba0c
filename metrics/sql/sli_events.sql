-- Grain: one row per SLI and subject (a task, or something in it): what objectives count.
-- Inputs: judged, tasks, attempts, uncertain, retry_chains, retry_faults, claims, dead_letters, saga, plans, time_limits, run_verdicts,
--   task_runs, _escalations; variable as_of.
-- No row for `availability`: its events are slices of time, not tasks (passes/availability.sql).
-- Event time is the moment the verdict became due. For latency, active_latency and cost, `good` means measured: the
-- objective holds `value` against its own cut; `bad` is bad whatever the cut.
WITH per_task AS (
  SELECT 'task_completion' AS sli, *, completion AS verdict, NULL::DOUBLE AS value FROM judged
  UNION ALL
  SELECT 'autonomous_completion', *,
    CASE WHEN outcome = 'handed_over' THEN 'bad' WHEN completion = 'good' AND interventions > 0 THEN 'bad' ELSE completion END, NULL
  FROM judged
  UNION ALL
  SELECT 'human_intervention', *, CASE WHEN interventions = 0 THEN 'good' ELSE 'bad' END, interventions FROM judged
  UNION ALL
  SELECT 'latency', *, completion, wall_s FROM judged
  UNION ALL
  SELECT 'active_latency', *, completion, active_s FROM judged
  UNION ALL
  SELECT 'cost', *, CASE WHEN cost_complete AND cost_usd IS NOT NULL THEN 'good' ELSE 'unknown' END, CASE WHEN cost_complete THEN cost_usd END FROM judged
  UNION ALL
  SELECT 'lost_task', *, CASE WHEN sampled THEN 'unknown' WHEN outcome = 'lost' OR ended_at > deadline_at THEN 'bad' ELSE 'good' END, NULL FROM judged
  UNION ALL
  SELECT 'dead_letter', *, CASE WHEN task_id IN (SELECT task_id FROM dead_letters) THEN 'bad' ELSE 'good' END, NULL FROM judged
  UNION ALL
  -- claims that nobody verified are left out and counted: their share is the coverage. What the trace alone shows to be
  -- false is a finding; in the rate it counts only beside claims that could also have come out true
  SELECT 'false_success', *,
    CASE
      WHEN evaluated IS NULL THEN 'excluded'
      WHEN task_id IN (SELECT task_id FROM claims WHERE kind = 'false_success') THEN 'bad'
      WHEN evaluated = 'pass' THEN 'good'
      ELSE 'bad'
    END, NULL
  FROM judged
  WHERE claimed = 'success' OR task_id IN (SELECT task_id FROM claims WHERE kind = 'false_success')
  UNION ALL
  SELECT 'compensation', j.*, CASE WHEN s.undone = s.effects THEN 'good' ELSE 'bad' END, s.effects - s.undone
  FROM judged j
  JOIN saga s USING (task_id)
  UNION ALL
  -- whether an unlabelled question was needed is unknown: objectives leave it out, and show what it could change
  SELECT 'escalation_precision', j.*, CASE WHEN e.needed THEN 'good' WHEN NOT e.needed THEN 'bad' ELSE 'unknown' END, NULL
  FROM judged j
  JOIN _escalations e USING (task_id)
  WHERE e.asked
  UNION ALL
  SELECT 'escalation_recall', j.*, CASE WHEN e.asked THEN 'good' ELSE 'bad' END, NULL
  FROM judged j
  JOIN _escalations e USING (task_id)
  WHERE e.needed
),
-- what is counted below the task: attempts, chains of tries, calls, runs
per_subject AS (
  -- what a sender that samples did twice, or lost, may be in a trace it did not keep
  SELECT 'duplicate_action' AS sli, a.task_id, a.attempt_id AS subject_id, a.started_at AS event_time,
    CASE WHEN t.sampled THEN 'unknown' WHEN a.duplicate = 'unprotected' THEN 'bad' ELSE 'good' END AS verdict, NULL::DOUBLE AS value,
    true AS in_maintenance
  FROM attempts a
  JOIN tasks t USING (task_id)
  WHERE a.action_id IS NOT NULL
  UNION ALL
  SELECT 'uncertain_outcome', task_id, attempt_id, due_at, CASE WHEN settled_at <= due_at THEN 'good' ELSE 'bad' END,
    epoch(settled_at) - last_ns / 1e9, true
  FROM uncertain
  WHERE due_at <= getvariable('as_of')
  UNION ALL
  SELECT 'retry_discipline', c.task_id, c.chain_id, j.decided_at,
    CASE WHEN c.chain_id IN (SELECT chain_id FROM retry_faults) THEN 'bad' ELSE 'good' END, c.tries, false
  FROM retry_chains c
  JOIN judged j USING (task_id)
  WHERE c.place = 1 AND (c.tries > 1 OR c.chain_id IN (SELECT chain_id FROM retry_faults))
  UNION ALL
  SELECT 'time_limit', l.task_id, l.subject, l.ended_at, CASE WHEN l.over THEN 'bad' ELSE 'good' END, l.took_s, false
  FROM time_limits l
  -- what is usual is no limit that anyone set
  WHERE l.role = 'tool' AND l.limit_s IS NOT NULL AND l.rule <> 'time_limit.baseline'
  UNION ALL
  SELECT 'failure_plan', p.task_id, p.chain_id, j.decided_at, CASE WHEN p.kept THEN 'good' ELSE 'bad' END, NULL, false
  FROM plans p
  JOIN judged j USING (task_id)
  UNION ALL
  -- value: seconds from the crash to the next sign of progress
  SELECT 'recovery', j.task_id, r.run_id, j.decided_at,
    CASE WHEN bool_or(n.verdict = 'ended') THEN 'good' ELSE 'bad' END, min(n.start_ns - r.last_ns) / 1e9, false
  FROM run_verdicts r
  JOIN task_runs t USING (run_id)
  JOIN judged j USING (task_id)
  LEFT JOIN task_runs m ON m.task_id = t.task_id AND m.position > t.position
  LEFT JOIN run_verdicts n ON n.run_id = m.run_id
  WHERE r.verdict = 'crashed' AND NOT r.only_accepted
  GROUP BY j.task_id, r.run_id, j.decided_at
)
SELECT
  sli, task_id, task_id AS subject_id,
  decided_at AS event_time,
  -- a maintenance window excuses slowness and failure, not loss
  CASE WHEN excluded_reason IS NULL OR (sli = 'lost_task' AND excluded_reason = 'maintenance') THEN verdict ELSE 'excluded' END AS verdict,
  value, agent, task_type, service, environment, app_version,
  CASE
    WHEN excluded_reason IS NOT NULL AND NOT (sli = 'lost_task' AND excluded_reason = 'maintenance') THEN excluded_reason
    WHEN verdict = 'excluded' AND sli = 'false_success' THEN 'claim_not_verified'
    WHEN verdict = 'excluded' THEN 'cancelled_by_user_in_time'
  END AS excluded_reason,
  verdict <> 'unknown' AS settled,
  outcome_evidence AS evidence
FROM per_task
UNION ALL
SELECT
  s.sli, s.task_id, s.subject_id, s.event_time,
  -- a maintenance window excuses slowness and failure, not what was done twice or what nobody knows
  CASE WHEN t.excluded_reason IS NULL OR (s.in_maintenance AND t.excluded_reason = 'maintenance') THEN s.verdict ELSE 'excluded' END,
  s.value, t.agent, t.task_type, t.service, t.environment, t.app_version,
  CASE WHEN NOT (s.in_maintenance AND t.excluded_reason = 'maintenance') THEN t.excluded_reason END,
  s.verdict <> 'unknown',
  NULL
FROM per_subject s
JOIN tasks t USING (task_id)
