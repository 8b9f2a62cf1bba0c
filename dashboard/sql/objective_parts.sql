-- one row per agent or task type an objective is held against on its own, the ones in trouble first
-- inputs: slo_status
-- parameters: slo
SELECT
    slo, objective, title, agent, task_type, n, good, bad, sli, lower, upper, target, remaining, state, burn
FROM slo_status
WHERE slo = $slo AND split
ORDER BY remaining NULLS LAST, n DESC, objective
