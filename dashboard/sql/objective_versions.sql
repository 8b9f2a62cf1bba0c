-- one row per version of a service that first ran within the objective's window
-- inputs: tasks, slo_status
-- parameters: slo, objective
WITH status AS (
    SELECT * FROM slo_status WHERE slo = $slo AND objective = $objective
),
seen AS (
    SELECT t.service, t.app_version, min(t.started_at) AS first_seen
    FROM tasks t, status s
    WHERE t.app_version IS NOT NULL
      AND t.excluded_reason IS NULL
      AND (s.agent IS NULL OR t.agent = s.agent)
      AND (s.task_type IS NULL OR t.task_type = s.task_type)
    GROUP BY t.service, t.app_version
)
SELECT v.service, v.app_version, v.first_seen
FROM seen v, status s
WHERE v.first_seen > s.window_start
  -- The first version of a service ever seen is its beginning and no change.
  AND v.first_seen > (SELECT min(o.first_seen) FROM seen o WHERE o.service IS NOT DISTINCT FROM v.service)
ORDER BY v.first_seen
LIMIT 20
