-- one row per changed verdict of the task
-- inputs: revisions
-- parameters: id (a task_id)
SELECT changed_at, sli, from_verdict, to_verdict, cause
FROM revisions
WHERE task_id = $id
ORDER BY changed_at, sli
