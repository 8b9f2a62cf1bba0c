-- grain: one row per window of one objective, class of event, (in the first window) reason of exclusion, and value of
--        the dimensions the objective is split by
-- inputs: _slo_cube, the windows as lists of bands (lo excluded, hi included)
WITH picked AS (
    SELECT {dimensions} band, due_band, first_at, last_at, n,
           CASE WHEN inferred THEN n ELSE 0 END AS inferred,
           CASE WHEN verdict = 'excluded' OR {excluded} THEN 'excluded'
                WHEN verdict = 'good' THEN CASE WHEN {within} THEN 'good' ELSE 'bad' END
                ELSE verdict END AS class,
           CASE WHEN verdict = 'excluded' THEN excluded_reason
                WHEN {by_environment} THEN 'environment'
                WHEN {excluded} THEN 'evidence_inferred' END AS reason
    FROM _slo_cube
    WHERE sli = $sli AND (verdict <> 'unknown' OR due_s IS NOT DISTINCT FROM $due) AND {where}
), windows AS (
    SELECT unnest($ids) AS id, unnest($lows) AS lo, unnest($highs) AS hi
), placed AS (
    -- An unknown event is bad from the moment its policy says so, and unknown until then.
    SELECT {dimensions} w.id, p.first_at, p.last_at, p.n, p.inferred,
           CASE WHEN w.id = 0 THEN p.reason END AS reason,
           CASE WHEN p.class <> 'unknown' THEN CASE WHEN p.band > w.lo AND p.band <= w.hi THEN p.class END
                WHEN p.due_band <= w.hi THEN CASE WHEN p.due_band > w.lo THEN 'bad' END
                WHEN p.band > w.lo AND p.band <= w.hi THEN 'unknown' END AS class
    FROM windows w, picked p
)
SELECT id, class, reason, CAST(sum(n) AS BIGINT) AS n, CAST(sum(inferred) AS BIGINT) AS inferred,
       min(first_at) AS first_at, max(last_at) AS last_at {also}
FROM placed
WHERE class IS NOT NULL
GROUP BY {dimensions} id, class, reason
ORDER BY id, class, n DESC, reason
