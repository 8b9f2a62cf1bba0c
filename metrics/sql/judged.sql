-- Grain: one row per task that has ended, with what it counts as for completion.
-- Inputs: tasks.
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
