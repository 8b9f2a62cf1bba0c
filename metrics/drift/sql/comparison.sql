-- grain: one row per stream: its tasks in the window against those in the baseline, task by task
-- inputs: sli_events, _drift_streams (metric, agent, task_type, baseline_start, baseline_end, window_start, window_end)
-- P(new > old) is the Mann-Whitney U over n*m, ties counted half: the midranks of the window's tasks.
WITH values_ AS (
    SELECT s.stream, e.value, e.event_time >= s.window_start AS is_new
    FROM _drift_streams s
    JOIN sli_events e ON e.sli = s.metric AND e.agent IS NOT DISTINCT FROM s.agent
        AND e.task_type IS NOT DISTINCT FROM s.task_type
    WHERE e.verdict = 'good' AND e.value > 0
      AND ((e.event_time >= s.baseline_start AND e.event_time < s.baseline_end)
           OR (e.event_time >= s.window_start AND e.event_time < s.window_end))
), ranked AS (
    SELECT stream, value, is_new,
           rank() OVER (PARTITION BY stream ORDER BY value)
               + (count(*) OVER (PARTITION BY stream, value) - 1) / 2.0 AS midrank
    FROM values_
)
SELECT stream, count(*) FILTER (NOT is_new) AS old_n, count(*) FILTER (is_new) AS new_n,
       favg(value) FILTER (NOT is_new) AS old_mean, favg(value) FILTER (is_new) AS new_mean,
       (sum(midrank) FILTER (is_new) - count(*) FILTER (is_new) * (count(*) FILTER (is_new) + 1) / 2.0)
           / nullif(count(*) FILTER (is_new) * count(*) FILTER (NOT is_new), 0) AS p_dearer,
       quantile_cont(value, 0.9) FILTER (is_new) / quantile_cont(value, 0.9) FILTER (NOT is_new) AS p90_ratio,
       quantile_cont(value, 0.99) FILTER (is_new) / quantile_cont(value, 0.99) FILTER (NOT is_new) AS p99_ratio
FROM ranked
GROUP BY stream
ORDER BY stream
