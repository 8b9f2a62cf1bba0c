-- one row per cause for which decided verdicts changed within 28 days, the most frequent first
-- inputs: revisions, pipeline
-- remembered: until the next pass
SELECT cause, sli, count(*) AS changes, count(DISTINCT task_id) AS tasks, max(changed_at) AS last_changed
FROM revisions
WHERE changed_at > (SELECT max(as_of) FROM pipeline) - INTERVAL 28 DAY
GROUP BY cause, sli
ORDER BY changes DESC, cause, sli
LIMIT 30
