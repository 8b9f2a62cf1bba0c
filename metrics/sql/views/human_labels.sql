-- Grain: one row per task that asked a human, or of which anyone says whether it needed one.
-- Inputs: core.tasks, core._escalations, core._latest_labels.
-- A person's last word is shown at once; objectives count it from the next pass on (see _escalations.sql). Without a label
-- whether a human was needed is unknown: neither yes nor no.
WITH ids AS (
  SELECT task_id FROM core._escalations UNION SELECT task_id FROM core._latest_labels
),
labels AS (
  SELECT
    t.task_id, t.task_type, t.agent, t.service, t.environment, t.eligible, t.started_at, t.decided_at,
    coalesce(e.asked, false) AS asked,
    coalesce(e.asks, 0) AS asks,
    e.asked_at, e.right_level,
    CASE WHEN l.task_id IS NULL THEN e.needed ELSE l.word.needed END AS needed,
    CASE WHEN l.task_id IS NULL THEN e.source ELSE 'person' END AS source,
    CASE WHEN l.task_id IS NULL THEN e.note ELSE l.word.note END AS note,
    l.word.said_by AS said_by,
    l.word.said_at AS said_at,
    CASE WHEN l.task_id IS NULL THEN e.evidence ELSE [] END AS evidence
  FROM ids i
  JOIN core.tasks t USING (task_id)
  LEFT JOIN core._escalations e USING (task_id)
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
