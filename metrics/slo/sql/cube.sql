-- grain: one row per SLI, verdict, asked-for dimension, cut band and time band
-- inputs: rows of sli_events and tasks (event_rows.sql, task_rows.sql)
-- An unknown event stands once per unknown policy: `band` is when it happened, `due_band` when it turns bad.
CREATE OR REPLACE TEMP TABLE _slo_cube AS
WITH rows AS NOT MATERIALIZED ({rows})
SELECT sli, verdict, {dimensions} {cut_band} AS cut_band, coalesce(inferred, FALSE) AS inferred,
       CASE WHEN verdict = 'excluded' THEN coalesce(excluded_reason, 'unnamed') END AS excluded_reason,
       CAST(NULL AS BIGINT) AS due_s, {band} AS band, CAST(NULL AS USMALLINT) AS due_band,
       min(event_time) AS first_at, max(event_time) AS last_at, count(*) AS n
FROM rows
WHERE event_time > $first AND event_time <= $last AND verdict <> 'unknown' AND NOT ({unmeasured})
GROUP BY ALL
UNION ALL
SELECT sli, 'unknown', {dimensions} 0, coalesce(inferred, FALSE), NULL, due_s, {band},
       CASE WHEN due_s IS NOT NULL THEN {due_band} END, min(event_time), max(event_time), count(*)
FROM rows, (SELECT unnest($due) AS due_s)
WHERE event_time > $first - to_seconds($longest_due) AND event_time <= $last
  AND (verdict = 'unknown' OR {unmeasured})
GROUP BY ALL
