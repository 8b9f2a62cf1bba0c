-- one row per incident behind the bad events of an objective's window, most bad events first
-- inputs: incidents, incident_findings, sli_events, slo_status
-- parameters: slo, objective, sli (a built-in SLI or NULL)
WITH status AS (
    SELECT * FROM slo_status WHERE slo = $slo AND objective = $objective
),
bad_tasks AS (
    SELECT DISTINCT e.task_id
    FROM sli_events e, status s
    WHERE e.sli = $sli
      AND e.event_time > s.window_start AND e.event_time <= s.window_end
      AND (s.agent IS NULL OR e.agent = s.agent)
      AND (s.task_type IS NULL OR e.task_type = s.task_type)
      AND (
          e.verdict = 'bad'
          OR e.verdict = 'good' AND CASE s.op
              WHEN 'lt' THEN e.value >= s.cut
              WHEN 'lte' THEN e.value > s.cut
              WHEN 'gt' THEN e.value <= s.cut
              WHEN 'gte' THEN e.value < s.cut
              ELSE false
          END
      )
)
SELECT
    i.incident_id, i.kind, i.mode, i.severity, i.state, i.agent, i.tool, i.first_seen, i.last_seen,
    count(DISTINCT f.task_id) AS bad_tasks
FROM incidents i
JOIN incident_findings f USING (fingerprint)
SEMI JOIN bad_tasks b ON b.task_id = f.task_id
GROUP BY ALL
ORDER BY bad_tasks DESC, last_seen DESC, i.incident_id
LIMIT 12
