-- The SLI events that the touched tasks had. Inputs: core.sli_events, old_tasks, old_traces.
-- No event is earlier than its task's first span, and events are kept in the order of passes: zone maps spare the rest.
SET VARIABLE first_event = (SELECT make_timestamp(min(first_ns) // 1000) FROM old_traces);
CREATE OR REPLACE TEMP TABLE old_events AS
SELECT e.* FROM core.sli_events e SEMI JOIN old_tasks o ON o.task_id = e.task_id WHERE e.event_time >= getvariable('first_event');
