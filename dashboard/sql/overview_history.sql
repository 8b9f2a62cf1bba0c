-- one row per objective and kept evaluation of the last 30 days
-- inputs: slo_history
SELECT slo, objective, "at", n, good, sli, remaining
FROM slo_history
WHERE "at" >= (SELECT max("at") FROM slo_history) - INTERVAL 30 DAY
ORDER BY slo, objective, "at"
