-- What earlier passes said of the touched tasks and a derivation cannot know: revisions and first sightings.
-- Inputs: old_tasks, core.revisions, core.findings.
CREATE OR REPLACE TEMP TABLE kept_revisions AS
SELECT r.task_id, count(*) AS revision FROM core.revisions r SEMI JOIN old_tasks o ON o.task_id = r.task_id GROUP BY r.task_id;
CREATE OR REPLACE TEMP TABLE kept_findings AS
SELECT f.finding_id, min(f.found_at) AS found_at
FROM core.findings f
SEMI JOIN old_tasks o ON o.task_id = f.task_id
GROUP BY f.finding_id;
