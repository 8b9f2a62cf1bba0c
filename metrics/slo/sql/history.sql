-- grain: one row per point in time of one objective, oldest first
-- inputs: _slo_cube, the points as lists of bands (window start, step start, point)
WITH classed AS (
    SELECT CASE WHEN verdict = 'unknown' THEN due_band ELSE band END AS band, n,
           CASE WHEN verdict = 'good' THEN CASE WHEN {within} THEN 'good' ELSE 'bad' END
                WHEN verdict = 'unknown' THEN 'bad' ELSE verdict END AS class
    FROM _slo_cube
    WHERE sli = $sli AND (verdict <> 'unknown' OR due_s IS NOT DISTINCT FROM $due) AND {where}
      AND verdict <> 'excluded' AND NOT {excluded}
), bands AS (
    SELECT unnest(range($last_band + 1)) AS band
), running AS (
    SELECT b.band,
           sum(coalesce(sum(c.n) FILTER (c.class = 'good'), 0)) OVER up_to AS good,
           sum(coalesce(sum(c.n) FILTER (c.class = 'bad'), 0)) OVER up_to AS bad
    FROM bands b LEFT JOIN classed c ON c.band = b.band
    GROUP BY b.band
    WINDOW up_to AS (ORDER BY b.band ROWS UNBOUNDED PRECEDING)
), points AS (
    SELECT unnest($ids) AS id, unnest($lows) AS lo, unnest($steps) AS step_lo, unnest($highs) AS hi
)
SELECT p.id, CAST(h.good - l.good AS BIGINT) AS good, CAST(h.bad - l.bad AS BIGINT) AS bad,
       CAST(h.good - s.good AS BIGINT) AS step_good, CAST(h.bad - s.bad AS BIGINT) AS step_bad
FROM points p
JOIN running l ON l.band = p.lo
JOIN running s ON s.band = p.step_lo
JOIN running h ON h.band = p.hi
ORDER BY p.id
