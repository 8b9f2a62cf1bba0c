-- Grain: one row per task, tool and second, with the number of tasks that tried that tool again in that second.
-- Inputs: retry_moments, met_moments (kept rows of other tasks in the same seconds).
-- The join keys of these seconds touch every task that shares one, so each task sees the others whenever one changes.
WITH others AS (
  SELECT task_id, tool, second FROM retry_moments
  UNION
  SELECT task_id, tool, second FROM met_moments
),
crowds AS (
  SELECT tool, second, count(DISTINCT task_id) AS tasks FROM others GROUP BY tool, second
)
SELECT m.*, c.tasks
FROM retry_moments m
JOIN crowds c USING (tool, second)
