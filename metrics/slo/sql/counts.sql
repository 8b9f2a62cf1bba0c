-- grain: one row per window of one objective
-- inputs: _slo_cube, the windows as lists of bands (lo excluded, hi included)
WITH picked AS (
    SELECT band, due_band, inferred, first_at, n,
           CASE WHEN verdict = 'excluded' OR {excluded} THEN 'excluded'
                WHEN verdict = 'good' THEN CASE WHEN {within} THEN 'good' ELSE 'bad' END
                ELSE verdict END AS class
    FROM _slo_cube
    WHERE sli = $sli AND (verdict <> 'unknown' OR due_s IS NOT DISTINCT FROM $due) AND {where}
), windows AS (
    SELECT unnest($ids) AS id, unnest($lows) AS lo, unnest($highs) AS hi
), placed AS (
    -- An unknown event is bad from the moment its policy says so, and unknown until then.
    SELECT w.id, p.inferred, p.first_at, p.n,
           CASE WHEN p.class <> 'unknown' THEN CASE WHEN p.band > w.lo AND p.band <= w.hi THEN p.class END
                WHEN p.due_band <= w.hi THEN CASE WHEN p.due_band > w.lo THEN 'bad' END
                WHEN p.band > w.lo AND p.band <= w.hi THEN 'unknown' END AS class
    FROM windows w, picked p
)
SELECT w.id,
       coalesce(sum(n) FILTER (class = 'good'), 0) AS good,
       coalesce(sum(n) FILTER (class = 'bad'), 0) AS bad,
       coalesce(sum(n) FILTER (class = 'unknown'), 0) AS unknown,
       coalesce(sum(n) FILTER (class = 'excluded'), 0) AS excluded,
       coalesce(sum(n) FILTER (class IN ('good', 'bad') AND inferred), 0) AS inferred,
       min(first_at) FILTER (class IN ('good', 'bad')) AS first_at
FROM windows w LEFT JOIN placed p ON p.id = w.id
GROUP BY w.id
ORDER BY w.id
