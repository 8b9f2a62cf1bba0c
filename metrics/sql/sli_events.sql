-- Grain: one row per SLI and subject (a task, or an attempt): what objectives count.
-- Inputs: tasks, attempts.
-- Event time is the moment the verdict became due. For latency, active_latency and cost, `good` means measured: the
-- objective holds `value` against its own cut; `bad` is bad whatever the cut.
WITH judged AS (
  SELECT
    *,
    CASE
      WHEN outcome = 'completed' THEN 'good'
      WHEN outcome = 'handed_over' THEN CASE WHEN claimed = 'success' THEN 'good' ELSE 'unknown' END
      WHEN outcome = 'cancelled_user' THEN CASE WHEN decided_at < deadline_at AND NOT had_trouble AND interventions = 0 THEN 'excluded' ELSE 'bad' END
      WHEN outcome = 'unknown' THEN 'unknown'
      ELSE 'bad'
    END AS completion
  FROM tasks
  WHERE outcome NOT IN ('running', 'waiting_human')
),
per_task AS (
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
  SELECT 'lost_task', *, CASE WHEN outcome = 'lost' OR ended_at > deadline_at THEN 'bad' ELSE 'good' END, NULL FROM judged
  UNION ALL
  SELECT 'dead_letter', *, CASE WHEN outcome = 'dead_letter' THEN 'bad' ELSE 'good' END, NULL FROM judged
)
SELECT
  sli, task_id, task_id AS subject_id,
  decided_at AS event_time,
  -- a maintenance window excuses slowness and failure, not loss
  CASE WHEN excluded_reason IS NULL OR (sli = 'lost_task' AND excluded_reason = 'maintenance') THEN verdict ELSE 'excluded' END AS verdict,
  value, agent, task_type, service, environment, app_version,
  CASE
    WHEN excluded_reason IS NOT NULL AND NOT (sli = 'lost_task' AND excluded_reason = 'maintenance') THEN excluded_reason
    WHEN verdict = 'excluded' THEN 'cancelled_by_user_in_time'
  END AS excluded_reason,
  verdict <> 'unknown' AS settled,
  outcome_evidence AS evidence
FROM per_task
UNION ALL
SELECT
  'duplicate_action', a.task_id, a.attempt_id, a.started_at,
  CASE
    WHEN t.excluded_reason IS NOT NULL AND t.excluded_reason <> 'maintenance' THEN 'excluded'
    WHEN a.duplicate = 'unprotected' THEN 'bad'
    ELSE 'good'
  END,
  NULL, t.agent, t.task_type, t.service, t.environment, t.app_version,
  CASE WHEN t.excluded_reason <> 'maintenance' THEN t.excluded_reason END,
  true,
  NULL
FROM attempts a
JOIN tasks t USING (task_id)
WHERE a.action_id IS NOT NULL
