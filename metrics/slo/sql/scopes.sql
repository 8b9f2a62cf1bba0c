-- grain: one row per value of the asked-for dimensions of one objective, most events first
-- inputs: _slo_cube
SELECT {dimensions}
FROM _slo_cube
WHERE sli = $sli AND (verdict <> 'unknown' OR due_s IS NOT DISTINCT FROM $due) AND {where}
  AND verdict <> 'excluded' AND NOT {excluded}
GROUP BY ALL
ORDER BY sum(n) DESC, {dimensions}
LIMIT $most
