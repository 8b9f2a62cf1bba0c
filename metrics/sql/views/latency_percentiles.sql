-- Grain: one row per SLI with a value (latency, active latency, cost), agent, task type and window of days before the last pass.
-- Inputs: core.sli_hourly, core.pipeline.
-- The sketches of the hours are merged by adding up their buckets. A rank falls into one bucket, and the middle of that
-- bucket stands for it: within 1 % of the exact value. Between two ranks the value is interpolated, as quantile_cont does.
WITH hours AS (
  SELECT h.sli, h.agent, h.task_type, w.days, h.histogram, h.sum_value
  FROM core.sli_hourly h, core.pipeline p, (SELECT unnest([1, 7, 30]) AS days) w
  WHERE h.sli IN ('latency', 'active_latency', 'cost') AND h.histogram IS NOT NULL
    AND h.hour > p.as_of - to_days(w.days) AND h.hour <= p.as_of
),
counts AS (
  SELECT sli, agent, task_type, days, NULL AS bucket, (histogram ->> 'zero')::BIGINT AS n FROM hours
  UNION ALL
  SELECT sli, agent, task_type, days, entry.key, entry.value
  FROM (
    SELECT sli, agent, task_type, days, unnest(map_entries(CAST(histogram -> 'counts' AS MAP(INTEGER, BIGINT)))) AS entry
    FROM hours
  )
),
merged AS (
  SELECT sli, agent, task_type, days, bucket, sum(n) AS n
  FROM counts
  GROUP BY ALL
  HAVING sum(n) > 0
),
ranked AS (
  SELECT
    *,
    -- 2 g^i / (g + 1): the point whose distance to both ends of the bucket is the same share of them
    CASE WHEN bucket IS NULL THEN 0 ELSE 2 * pow(1.01 / 0.99, bucket) / (1.01 / 0.99 + 1) END AS middle,
    sum(n) OVER (PARTITION BY sli, agent, task_type, days ORDER BY bucket NULLS FIRST) AS upto,
    sum(n) OVER (PARTITION BY sli, agent, task_type, days) AS total
  FROM merged
),
asked AS (
  SELECT r.*, q.q, q.q * (r.total - 1) AS rank
  FROM ranked r, (SELECT unnest([0.5, 0.9, 0.99]) AS q) q
),
found AS (
  SELECT
    sli, agent, task_type, days, q, any_value(total) AS n,
    min(middle) FILTER (WHERE upto > floor(rank)) AS below,
    min(middle) FILTER (WHERE upto > ceil(rank)) AS above,
    any_value(rank - floor(rank)) AS part
  FROM asked
  GROUP BY ALL
)
SELECT
  sli, agent, task_type, days,
  any_value(n)::BIGINT AS n,
  any_value(below + (above - below) * part) FILTER (WHERE q = 0.5) AS p50,
  any_value(below + (above - below) * part) FILTER (WHERE q = 0.9) AS p90,
  any_value(below + (above - below) * part) FILTER (WHERE q = 0.99) AS p99
FROM found
GROUP BY ALL
