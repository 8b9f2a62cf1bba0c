-- one row: an objective as of the last evaluation, with the parts of its formula
-- inputs: slo_status
-- parameters: slo, objective
SELECT
    *,
    1 - target AS allowed_share,
    bad / nullif(n, 0) AS bad_share,
    bad / nullif(budget_events, 0) AS used_share,
    n > 0 AS counted
FROM slo_status
WHERE slo = $slo AND objective = $objective
