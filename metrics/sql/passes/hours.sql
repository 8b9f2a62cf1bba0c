-- The hours of the rollup that the pass touched, counted again. Inputs: old_events, sli_events, core.sli_events.
CREATE OR REPLACE TEMP TABLE touched_hours AS
SELECT DISTINCT date_trunc('hour', event_time) AS hour
FROM (SELECT event_time FROM old_events UNION ALL SELECT event_time FROM sli_events);
DELETE FROM core.sli_hourly WHERE hour IN (SELECT hour FROM touched_hours);
SET VARIABLE first_hour = (SELECT min(hour) FROM touched_hours);
SET VARIABLE last_hour = (SELECT max(hour) FROM touched_hours);
CREATE OR REPLACE TEMP TABLE hour_events AS
SELECT e.sli, e.agent, e.task_type, e.service, e.environment, h.hour, e.verdict, e.value
FROM core.sli_events e
JOIN touched_hours h ON h.hour = date_trunc('hour', e.event_time)
WHERE e.event_time >= getvariable('first_hour') AND e.event_time < getvariable('last_hour') + INTERVAL 1 HOUR
  -- slices of time are judged after the pass
  AND e.sli <> 'availability';
-- The histogram is a sketch that can be merged: values fall into buckets that grow by 1.01/0.99, so that the middle of a
-- bucket is within 1 % of every value in it, whatever their range (Masson, Rim, Lee: DDSketch, VLDB 2019). Bucket `i` holds
-- values above (1.01/0.99)^(i-1) and up to (1.01/0.99)^i; `zero` counts what is nothing: no cost, no time.
INSERT INTO core.sli_hourly
WITH buckets AS (
  SELECT
    sli, agent, task_type, service, environment, hour,
    CASE WHEN value > 1e-9 THEN ceil(ln(value) / ln(1.01 / 0.99))::INTEGER END AS bucket,
    count(*) AS n
  FROM hour_events
  WHERE verdict IN ('good', 'bad') AND value IS NOT NULL
  GROUP BY ALL
),
sketches AS (
  SELECT
    sli, agent, task_type, service, environment, hour,
    to_json(struct_pack(
      zero := coalesce(sum(n) FILTER (WHERE bucket IS NULL), 0)::BIGINT,
      counts := map_from_entries(coalesce(list(struct_pack(k := bucket, v := n) ORDER BY bucket) FILTER (WHERE bucket IS NOT NULL), []))
    ))::VARCHAR AS histogram
  FROM buckets
  GROUP BY ALL
),
counts AS (
  SELECT
    sli, agent, task_type, service, environment, hour,
    count(*) FILTER (WHERE verdict = 'good') AS good,
    count(*) FILTER (WHERE verdict = 'bad') AS bad,
    count(*) FILTER (WHERE verdict = 'unknown') AS unknown,
    count(*) FILTER (WHERE verdict = 'excluded') AS excluded,
    -- as decimals: a sum of floats depends on its order
    (sum(value::DECIMAL(38, 9)) FILTER (WHERE verdict IN ('good', 'bad')))::DOUBLE AS sum_value
  FROM hour_events
  GROUP BY ALL
)
SELECT c.*, s.histogram
FROM counts c
LEFT JOIN sketches s
  ON s.sli = c.sli AND s.hour = c.hour AND s.agent IS NOT DISTINCT FROM c.agent AND s.task_type IS NOT DISTINCT FROM c.task_type
  AND s.service IS NOT DISTINCT FROM c.service AND s.environment IS NOT DISTINCT FROM c.environment;
DROP TABLE hour_events;
