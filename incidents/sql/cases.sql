-- Grain: one row per incident: what is kept of its evaluation case, and what people said of it.
-- Inputs: incidents, case_log (what people said), case_revisions (every content that was exported or reviewed).
-- The word of a person holds for the content they saw: when the content has changed since, the case is to be looked at again.
WITH told AS (
  SELECT
    case_id,
    arg_max(state, said_at) FILTER (WHERE state IS NOT NULL) AS state,
    arg_max(content_hash, said_at) FILTER (WHERE state IS NOT NULL) AS seen_hash,
    arg_max(said_by, said_at) FILTER (WHERE state IS NOT NULL) AS said_by,
    arg_max(coalesce(note, ''), said_at) FILTER (WHERE state IS NOT NULL) AS note,
    max(said_at) FILTER (WHERE state IS NOT NULL) AS said_at,
    arg_max(case_set, said_at) FILTER (WHERE case_set IS NOT NULL) AS case_set
  FROM case_log
  GROUP BY case_id
),
latest AS (
  SELECT
    case_id,
    max(revision) AS revision,
    arg_max(content_hash, revision) AS content_hash,
    arg_max(proven, revision) AS proven,
    arg_max(reason, revision) AS reason
  FROM case_revisions
  GROUP BY case_id
)
SELECT
  i.incident_id AS case_id,
  i.incident_id, i.kind, i.mode,
  CASE
    WHEN t.state = 'retired' THEN 'retired'
    WHEN t.state = 'rejected' AND t.seen_hash = l.content_hash THEN 'rejected'
    WHEN NOT coalesce(l.proven, false) THEN 'draft'
    WHEN t.state = 'approved' AND t.seen_hash = l.content_hash THEN 'approved'
    ELSE 'in_review'
  END AS state,
  CASE WHEN t.state = 'retired' THEN 'retired' ELSE coalesce(t.case_set, 'regression') END AS case_set,
  l.revision, l.content_hash, l.reason,
  t.state AS said_state, t.seen_hash, t.said_by, t.said_at, nullif(t.note, '') AS note
FROM incidents i
LEFT JOIN told t ON t.case_id = i.incident_id
LEFT JOIN latest l ON l.case_id = i.incident_id
