-- Grain: one row per kind of finding: how many incidents a person called real or a false alarm.
-- Inputs: incidents.
SELECT
  kind,
  count(*) AS incidents,
  count(*) FILTER (WHERE verdict = 'real') AS real,
  count(*) FILTER (WHERE verdict = 'false_alarm') AS false_alarms,
  count(*) FILTER (WHERE verdict IS NULL) AS not_reviewed,
  CASE WHEN count(verdict) > 0 THEN count(*) FILTER (WHERE verdict = 'real') / count(verdict) END AS precision
FROM incidents
GROUP BY kind
ORDER BY kind
