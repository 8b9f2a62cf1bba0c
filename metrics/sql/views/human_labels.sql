-- Grain: one row per task that asked a human, or of which anyone says whether it needed one.
-- Inputs: core.tasks, core._escalations, core._latest_labels.
-- A person's last word is shown at once; objectives count it from the next pass on (see _escalations.sql). Without a label
-- whether a human was needed is unknown: neither yes nor no.
WITH asking AS (
  SELECT
    task_id, task_type, agent, service, environment, app_version, outcome, eligible, task_started_at AS started_at, decided_at,
    asked, asks, asked_at, right_level, needed, source, note, evidence
  FROM core._escalations
  UNION ALL
  -- nobody asked, and nothing but a person's word says anything: few, so that the tasks are joined for these alone
  SELECT
    t.task_id, t.task_type, t.agent, t.service, t.environment, t.app_version, t.outcome, t.eligible, t.started_at, t.decided_at,
    false, 0, NULL, NULL, NULL, NULL, NULL, []
  FROM (SELECT task_id FROM core._latest_labels EXCEPT SELECT task_id FROM core._escalations) i
  JOIN core.tasks t USING (task_id)
),
labels AS (
  SELECT
    a.task_id, a.task_type, a.agent, a.service, a.environment, a.app_version, a.outcome, a.eligible, a.started_at, a.decided_at,
    a.asked, a.asks, a.asked_at, a.right_level,
    CASE WHEN l.task_id IS NULL THEN a.needed ELSE l.word.needed END AS needed,
    CASE WHEN l.task_id IS NULL THEN a.source ELSE 'person' END AS source,
    CASE WHEN l.task_id IS NULL THEN a.note ELSE l.word.note END AS note,
    l.word.said_by AS said_by,
    l.word.said_at AS said_at,
    CASE WHEN l.task_id IS NULL THEN a.evidence ELSE [] END AS evidence
  FROM asking a
  LEFT JOIN core._latest_labels l USING (task_id)
)
SELECT
  *,
  CASE
    WHEN needed IS NULL THEN 'unknown'
    WHEN needed AND asked THEN 'needed'
    WHEN needed THEN 'missed'
    WHEN asked THEN 'not_needed'
    ELSE 'rightly_alone'
  END AS verdict
FROM labels
