-- The hours of the rollup that the pass touched, counted again. Inputs: old_events, sli_events, core.sli_events.
CREATE OR REPLACE TEMP TABLE touched_hours AS
SELECT DISTINCT date_trunc('hour', event_time) AS hour
FROM (SELECT event_time FROM old_events UNION ALL SELECT event_time FROM sli_events);
DELETE FROM core.sli_hourly WHERE hour IN (SELECT hour FROM touched_hours);
SET VARIABLE first_hour = (SELECT min(hour) FROM touched_hours);
SET VARIABLE last_hour = (SELECT max(hour) FROM touched_hours);
INSERT INTO core.sli_hourly
SELECT
  e.sli, e.agent, e.task_type, e.service, e.environment, h.hour,
  count(*) FILTER (WHERE e.verdict = 'good'),
  count(*) FILTER (WHERE e.verdict = 'bad'),
  count(*) FILTER (WHERE e.verdict = 'unknown'),
  count(*) FILTER (WHERE e.verdict = 'excluded'),
  (sum(e.value::DECIMAL(38, 9)) FILTER (WHERE e.verdict IN ('good', 'bad')))::DOUBLE,
  NULL
FROM core.sli_events e
JOIN touched_hours h ON h.hour = date_trunc('hour', e.event_time)
WHERE e.event_time >= getvariable('first_hour') AND e.event_time < getvariable('last_hour') + INTERVAL 1 HOUR
GROUP BY ALL;
