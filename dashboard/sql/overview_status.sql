-- one row per objective, the ones that need a look first
-- inputs: slo_status
SELECT *
FROM slo_status
ORDER BY
    list_position(['invalid', 'exhausted', 'at_risk', 'ok', 'insufficient_data', 'no_data'], state),
    remaining NULLS LAST,
    slo,
    objective
