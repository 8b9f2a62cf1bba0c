-- Who else tried one of these tools again in the same second: kept rows of tasks that this pass does not touch.
-- Inputs: retry_moments, core.retry_moments, old_tasks.
CREATE OR REPLACE TEMP TABLE met_moments AS
SELECT k.*
FROM core.retry_moments k
SEMI JOIN retry_moments m ON m.tool = k.tool AND m.second = k.second
ANTI JOIN old_tasks o ON o.task_id = k.task_id;
