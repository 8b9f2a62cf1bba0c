-- Grain: one row per agent and slice of its service hours: an event of the SLI `availability`.
-- Inputs: _service_slices, core.tasks.
-- Work is taken when a task starts. A task that only ends in a slice proves that the agent was there too; one that was
-- lost or failed in it proves nothing, since it may have been lost before.
WITH work AS (
  SELECT
    agent, started_at, ended_at, service,
    CASE
      WHEN outcome IN ('completed', 'handed_over', 'cancelled_user') THEN 'finished'
      WHEN outcome IN ('failed', 'lost', 'dead_letter', 'cancelled_system') THEN 'not_finished'
      ELSE 'open'
    END AS state
  FROM core.tasks
  WHERE agent IS NOT NULL AND excluded_reason IS NULL
),
met AS (
  SELECT s.agent, s.slice_start, w.service, w.state
  FROM _service_slices s
  JOIN work w ON w.agent = s.agent AND w.started_at >= s.slice_start AND w.started_at < s.slice_end
  UNION ALL
  SELECT s.agent, s.slice_start, w.service, 'finished'
  FROM _service_slices s
  JOIN work w ON w.agent = s.agent AND w.ended_at >= s.slice_start AND w.ended_at < s.slice_end
  WHERE w.state = 'finished'
),
told AS (
  SELECT
    agent, slice_start, min(service) AS service, count(*) AS n,
    bool_or(state = 'finished') AS finished, bool_or(state = 'open') AS open
  FROM met
  GROUP BY agent, slice_start
),
services AS (
  SELECT agent, min(service) AS service FROM work GROUP BY agent
)
SELECT
  'availability' AS sli,
  NULL::VARCHAR AS task_id,
  s.agent || ' ' || strftime(s.slice_start, '%Y-%m-%dT%H:%M:%SZ') AS subject_id,
  s.slice_end AS event_time,
  CASE
    WHEN s.in_maintenance THEN 'excluded'
    WHEN t.finished THEN 'good'
    WHEN t.open THEN 'unknown'
    WHEN t.n > 0 OR s.quiet_is_bad THEN 'bad'
    ELSE 'unknown'
  END AS verdict,
  s.agent,
  coalesce(t.service, v.service) AS service,
  CASE WHEN s.in_maintenance THEN 'maintenance' END AS excluded_reason,
  true AS settled
FROM _service_slices s
LEFT JOIN told t ON t.agent = s.agent AND t.slice_start = s.slice_start
LEFT JOIN services v ON v.agent = s.agent
