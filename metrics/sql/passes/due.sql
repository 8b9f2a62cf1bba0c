-- The traces of tasks that the clock alone changes, that an earlier pass left to be decided again (see peers.sql), or of
-- which a person has said something since.
-- Inputs: core.tasks, core._trace_tasks, core._recheck, core.label_log, core._labels_seen, core.task_aliases; variable as_of.
SET VARIABLE labels_upto = (SELECT coalesce(max(said_no), 0) FROM core.label_log);
CREATE OR REPLACE TEMP TABLE due_traces AS
SELECT DISTINCT trace_id
FROM core._trace_tasks
WHERE task_id IN (SELECT task_id FROM core.tasks WHERE next_due_at <= getvariable('as_of') AND NOT frozen)
  OR task_id IN (SELECT task_id FROM core._recheck)
  OR task_id IN (
    SELECT coalesce(a.task_id, l.task_id)
    FROM core.label_log l
    LEFT JOIN core.task_aliases a ON a.alias = l.task_id
    WHERE l.said_no > (SELECT max(said_no) FROM core._labels_seen));
