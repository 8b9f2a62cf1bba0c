-- Grain: one row per case: the content it had last, and its number.
-- Inputs: case_revisions; parameter ids (VARCHAR[]: ids of incidents; a twin and a control have theirs with a suffix).
SELECT
  case_id, max(revision) AS revision, arg_max(content_hash, revision) AS content_hash, arg_max(proven, revision) AS proven,
  arg_max(coalesce(reason, ''), revision) AS reason
FROM case_revisions
WHERE regexp_replace(case_id, '-(twin|control)$', '') IN (SELECT unnest($ids::VARCHAR[]))
GROUP BY case_id
