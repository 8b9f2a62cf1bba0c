-- one row per objective, the ones that need a look first
-- inputs: slo_status
-- Rows of single agents and task types (split) stand beside the row of all and are not shown here.
SELECT *
FROM slo_status
WHERE NOT split
ORDER BY
    list_position(['invalid', 'exhausted', 'at_risk', 'ok', 'insufficient_data', 'no_data'], state),
    remaining NULLS LAST,
    slo,
    objective
