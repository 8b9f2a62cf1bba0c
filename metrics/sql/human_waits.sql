-- Grain: one row per stretch of time in which a task waited for people.
-- Inputs: interventions.
-- Two questions open at once are one wait: the union of their times, not the sum.
WITH waits AS (
  SELECT
    task_id, requested_at, decided_at,
    coalesce(requested_at > max(decided_at) OVER (
      PARTITION BY task_id ORDER BY requested_at, decided_at ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), true) AS is_new
  FROM interventions
  WHERE decided_at > requested_at
),
numbered AS (
  SELECT *, sum(is_new::INTEGER) OVER (PARTITION BY task_id ORDER BY requested_at, decided_at) AS stretch FROM waits
)
SELECT task_id, min(requested_at) AS began_at, max(decided_at) AS ended_at
FROM numbered
GROUP BY task_id, stretch
