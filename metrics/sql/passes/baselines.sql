-- What is usual for every series and day of this pass: kept rows, and new ones where none is kept or the days before changed.
-- A baseline is a function of what the days before it hold, whenever that arrived: late spans of an earlier day make the kept
-- rows stale, and stale rows are counted again here. `measures`: one row per call that ended well, or task with known cost.
-- Inputs: tool_calls, tasks, touched, old_traces, old_tasks, detector_limits, work.attempts, work.steps, core.tasks, core.baselines.
SET VARIABLE baseline_days = (SELECT baseline_days FROM detector_limits);
SET VARIABLE low = (SELECT coalesce(min(first_ns), 0) FROM old_traces);
SET VARIABLE high = (SELECT coalesce(max(last_ns), -1) FROM old_traces);
CREATE OR REPLACE TEMP TABLE measures_now AS
SELECT series, make_timestamp(start_ns // 1000)::DATE AS day, (last_ns // 1000 - start_ns // 1000) / 1e6 AS value
FROM tool_calls
WHERE series IS NOT NULL AND outcome = 'ok' AND ended
UNION ALL
SELECT 'task:' || task_type, started_at::DATE, cost_usd FROM tasks WHERE cost_complete AND cost_usd IS NOT NULL AND task_type IS NOT NULL;
CREATE OR REPLACE TEMP TABLE measures_before AS
SELECT 'tool:' || tool AS series, started_at::DATE AS day, (epoch_us(ended_at) - start_ns // 1000) / 1e6 AS value
FROM work.attempts a
SEMI JOIN touched t ON t.trace_id = a.trace_id
WHERE start_ns BETWEEN getvariable('low') AND getvariable('high') AND disposition = 'executed' AND outcome = 'ok' AND ended_at IS NOT NULL AND seen_by = 'span'
UNION ALL
SELECT 'model:' || model, make_timestamp(start_ns // 1000)::DATE, (end_ns // 1000 - start_ns // 1000) / 1e6
FROM work.steps s
SEMI JOIN touched t ON t.trace_id = s.trace_id
WHERE start_ns BETWEEN getvariable('low') AND getvariable('high')
  AND is_model_call AND model IS NOT NULL AND task_id IS NOT NULL AND NOT (status = 'error' AND NOT is_interrupt) AND end_ns IS NOT NULL
UNION ALL
SELECT 'task:' || task_type, started_at::DATE, cost_usd
FROM core.tasks k
SEMI JOIN old_tasks o ON o.task_id = k.task_id
WHERE cost_complete AND cost_usd IS NOT NULL AND task_type IS NOT NULL;
CREATE OR REPLACE TEMP TABLE changed_days AS
SELECT DISTINCT series, day
FROM (
  SELECT series, day
  FROM (SELECT *, 1 AS side FROM measures_now UNION ALL SELECT *, -1 FROM measures_before)
  GROUP BY series, day, value
  HAVING sum(side) <> 0
);
CREATE OR REPLACE TEMP TABLE stale_baselines AS
SELECT DISTINCT b.series, b.day
FROM core.baselines b
LEFT JOIN changed_days c ON c.series = b.series AND c.day < b.day AND c.day >= b.day - getvariable('baseline_days')
WHERE b.stale OR c.series IS NOT NULL;
CREATE OR REPLACE TEMP TABLE due_baselines AS
SELECT series, day FROM stale_baselines
UNION
SELECT w.series, w.day
FROM (
  SELECT DISTINCT series, make_timestamp(start_ns // 1000)::DATE AS day FROM tool_calls WHERE series IS NOT NULL
  UNION
  SELECT DISTINCT 'task:' || task_type, started_at::DATE FROM tasks WHERE cost_complete AND task_type IS NOT NULL
) w
ANTI JOIN core.baselines b ON b.series = w.series AND b.day = w.day;
SET VARIABLE first_day = (SELECT min(day) - getvariable('baseline_days') FROM due_baselines);
SET VARIABLE last_day = (SELECT max(day) FROM due_baselines);
SET VARIABLE low = coalesce(epoch_us(getvariable('first_day')::TIMESTAMP) * 1000, 0);
SET VARIABLE high = coalesce(epoch_us(getvariable('last_day')::TIMESTAMP) * 1000 - 1, -1);
CREATE OR REPLACE TEMP TABLE measures AS
SELECT * FROM measures_now
UNION ALL
SELECT 'tool:' || tool, started_at::DATE, (epoch_us(ended_at) - start_ns // 1000) / 1e6
FROM work.attempts a
ANTI JOIN touched t ON t.trace_id = a.trace_id
WHERE start_ns BETWEEN getvariable('low') AND getvariable('high') AND disposition = 'executed' AND outcome = 'ok' AND ended_at IS NOT NULL AND seen_by = 'span'
UNION ALL
SELECT 'model:' || model, make_timestamp(start_ns // 1000)::DATE, (end_ns // 1000 - start_ns // 1000) / 1e6
FROM work.steps s
ANTI JOIN touched t ON t.trace_id = s.trace_id
WHERE start_ns BETWEEN getvariable('low') AND getvariable('high')
  AND is_model_call AND model IS NOT NULL AND task_id IS NOT NULL AND NOT (status = 'error' AND NOT is_interrupt) AND end_ns IS NOT NULL
UNION ALL
SELECT 'task:' || task_type, started_at::DATE, cost_usd
FROM core.tasks k
ANTI JOIN old_tasks o ON o.task_id = k.task_id
WHERE started_at >= getvariable('first_day') AND started_at < getvariable('last_day')
  AND cost_complete AND cost_usd IS NOT NULL AND task_type IS NOT NULL;
CREATE OR REPLACE TEMP TABLE new_baselines AS
WITH counted AS (
  SELECT
    d.series, d.day, count(m.value) AS n,
    quantile_disc(m.value, 0.99) AS p99,
    quantile_disc(m.value, 0.5) AS median
  FROM due_baselines d
  LEFT JOIN measures m
    ON m.series = d.series AND m.day < d.day AND m.day >= d.day - getvariable('baseline_days')
  GROUP BY d.series, d.day
)
SELECT
  c.series, c.day, c.n,
  CASE
    WHEN c.series LIKE 'task:%' THEN CASE WHEN c.n >= l.baseline_tasks THEN c.median END
    WHEN c.n >= l.baseline_calls THEN c.p99
  END AS value
FROM counted c, detector_limits l;
CREATE OR REPLACE TEMP TABLE known_baselines AS
SELECT * FROM new_baselines
UNION ALL
SELECT b.series, b.day, b.n, b.value
FROM core.baselines b
ANTI JOIN new_baselines n ON n.series = b.series AND n.day = b.day
SEMI JOIN steps s ON make_timestamp(s.start_ns // 1000)::DATE = b.day;
