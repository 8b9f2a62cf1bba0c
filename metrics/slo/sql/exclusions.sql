-- grain: one row per reason for which events of one objective were left out of its SLO window
-- inputs: _slo_cube
SELECT CASE WHEN verdict = 'excluded' THEN excluded_reason
            WHEN {by_environment} THEN 'environment' ELSE 'evidence_inferred' END AS reason,
       CAST(sum(n) AS BIGINT) AS n
FROM _slo_cube
WHERE sli = $sli AND (verdict <> 'unknown' OR due_s IS NOT DISTINCT FROM $due) AND {where}
  AND (verdict = 'excluded' OR {excluded}) AND band > $lo AND band <= $hi
GROUP BY ALL
ORDER BY n DESC, reason
