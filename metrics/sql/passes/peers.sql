-- Tasks that this pass did not touch and whose verdict it may have changed all the same: by a baseline that is another now,
-- or as one of a crowd that tries again in the same second. The next pass decides them again. Run before rows are replaced.
-- Inputs: new_baselines, touched, old_tasks, tasks, retry_moments, detector_limits, core.baselines, core.retry_moments,
--   core.tasks, work.attempts, work.steps, core._recheck.
CREATE OR REPLACE TEMP TABLE moved_baselines AS
SELECT n.series, n.day, least(coalesce(n.value, b.value), coalesce(b.value, n.value)) AS value
FROM new_baselines n
JOIN core.baselines b ON b.series = n.series AND b.day = n.day
WHERE n.value IS DISTINCT FROM b.value;
SET VARIABLE low = (SELECT coalesce(epoch_us(min(day)::TIMESTAMP) * 1000, 0) FROM moved_baselines);
SET VARIABLE high = (SELECT coalesce(epoch_us((max(day) + 1)::TIMESTAMP) * 1000 - 1, -1) FROM moved_baselines);
CREATE OR REPLACE TEMP TABLE crowds AS
WITH before AS (
  SELECT k.* FROM core.retry_moments k SEMI JOIN old_tasks o ON o.task_id = k.task_id
),
moments AS (
  SELECT DISTINCT tool, second FROM before UNION SELECT DISTINCT tool, second FROM retry_moments
),
others AS (
  SELECT k.tool, k.second, k.task_id
  FROM core.retry_moments k
  SEMI JOIN moments m ON m.tool = k.tool AND m.second = k.second
  ANTI JOIN old_tasks o ON o.task_id = k.task_id
)
SELECT
  o.task_id, o.tool, o.second,
  count(*) OVER (PARTITION BY o.tool, o.second)
    + (SELECT count(*) FROM before b WHERE b.tool = o.tool AND b.second = o.second) AS was,
  count(*) OVER (PARTITION BY o.tool, o.second)
    + (SELECT count(*) FROM retry_moments r WHERE r.tool = o.tool AND r.second = o.second) AS now_is
FROM others o;
CREATE OR REPLACE TEMP TABLE peers AS
SELECT c.task_id FROM crowds c, detector_limits d WHERE (c.was >= d.synchronised_tasks) <> (c.now_is >= d.synchronised_tasks)
UNION
SELECT a.task_id
FROM work.attempts a
JOIN moved_baselines b ON b.series = 'tool:' || a.tool AND b.day = a.started_at::DATE
CROSS JOIN detector_limits d
ANTI JOIN touched t ON t.trace_id = a.trace_id
WHERE a.start_ns BETWEEN getvariable('low') AND getvariable('high')
  AND (epoch_us(a.ended_at) - a.start_ns // 1000) / 1e6 > greatest(b.value * d.hung_multiple, d.hung_floor_s)
UNION
SELECT s.task_id
FROM work.steps s
JOIN moved_baselines b ON b.series = 'model:' || s.model AND b.day = make_timestamp(s.start_ns // 1000)::DATE
CROSS JOIN detector_limits d
ANTI JOIN touched t ON t.trace_id = s.trace_id
WHERE s.start_ns BETWEEN getvariable('low') AND getvariable('high') AND s.is_model_call AND s.task_id IS NOT NULL
  AND (s.end_ns - s.start_ns) / 1e9 > greatest(b.value * d.hung_multiple, d.hung_floor_s)
UNION
SELECT k.task_id
FROM core.tasks k
JOIN moved_baselines b ON b.series = 'task:' || k.task_type AND b.day = k.started_at::DATE
CROSS JOIN detector_limits d
ANTI JOIN old_tasks o ON o.task_id = k.task_id
WHERE k.cost_complete AND k.cost_usd > b.value * d.runaway_multiple;
