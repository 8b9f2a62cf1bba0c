-- The SLI events that the touched tasks had. Inputs: core.sli_events, old_tasks.
CREATE OR REPLACE TEMP TABLE old_events AS
SELECT e.* FROM core.sli_events e SEMI JOIN old_tasks o ON o.task_id = e.task_id;
