-- one row per objective there is, the whole before its agents and task types
-- inputs: slo_status
SELECT slo, objective, coalesce(title, slo) AS title, split, n
FROM slo_status
ORDER BY min(coalesce(title, slo)) OVER (PARTITION BY slo), slo, split, n DESC, objective
