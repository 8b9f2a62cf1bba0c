-- Grain: one row per kind of finding, by name.
-- Inputs: incident_accuracy.
SELECT kind, incidents, reviewed, real, false_alarms, coverage, precision, precision_low, precision_high
FROM incident_accuracy
ORDER BY kind
