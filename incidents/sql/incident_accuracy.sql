-- Grain: one row per kind of finding: how many incidents a person called real or a false alarm.
-- Inputs: incidents.
-- Precision is of reviewed incidents only, with the share that was reviewed beside it and the Wilson 95 % interval
-- (z = 1.959963984540054, z^2 = 3.841458820694124). What was missed altogether nobody can count here.
WITH counts AS (
  SELECT
    kind,
    count(*) AS incidents,
    count(verdict) AS reviewed,
    count(*) FILTER (WHERE verdict = 'real') AS real,
    count(*) FILTER (WHERE verdict = 'false_alarm') AS false_alarms
  FROM incidents
  GROUP BY kind
)
SELECT
  kind, incidents, reviewed, real, false_alarms,
  reviewed / incidents AS coverage,
  CASE WHEN reviewed > 0 THEN real / reviewed END AS precision,
  CASE WHEN reviewed > 0 THEN
    greatest(0, (real / reviewed + 3.841458820694124 / (2 * reviewed) - 1.959963984540054 * sqrt(
      real / reviewed * (1 - real / reviewed) / reviewed + 3.841458820694124 / (4 * reviewed * reviewed))) / (1 + 3.841458820694124 / reviewed))
  END AS precision_low,
  CASE WHEN reviewed > 0 THEN
    least(1, (real / reviewed + 3.841458820694124 / (2 * reviewed) + 1.959963984540054 * sqrt(
      real / reviewed * (1 - real / reviewed) / reviewed + 3.841458820694124 / (4 * reviewed * reviewed))) / (1 + 3.841458820694124 / reviewed))
  END AS precision_high
FROM counts
