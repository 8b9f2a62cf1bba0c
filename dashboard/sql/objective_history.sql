-- one row per kept point of an objective, oldest first
-- inputs: slo_history
-- parameters: slo, objective
SELECT "at", n, good, bad, sli, remaining, burn, step_n, step_bad, revision
FROM slo_history
WHERE slo = $slo AND objective = $objective
ORDER BY "at"
