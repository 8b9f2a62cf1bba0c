-- Grain: one row per kind of finding: how many incidents a person called real or a false alarm.
-- Inputs: incidents.
-- Precision is of reviewed incidents only, with the share that was reviewed beside it and the Wilson 95 % interval
-- (metrics/intervals.py). What was missed altogether nobody can count here.
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
  {{wilson_lower(real, reviewed)}} AS precision_low,
  {{wilson_upper(real, reviewed)}} AS precision_high
FROM counts
