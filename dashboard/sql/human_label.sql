-- one row: whether a task needed a human, who says so, and whether it asked one; none where nothing is known
-- inputs: human_labels
-- parameters: id (a task_id)
SELECT asked, needed, source, note, said_by, said_at, verdict
FROM human_labels
WHERE task_id = $id
