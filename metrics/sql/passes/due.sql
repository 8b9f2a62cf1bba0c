-- The traces of tasks that the clock alone changes, or that an earlier pass left to be decided again (see peers.sql).
-- Inputs: core.tasks, core._trace_tasks, core._recheck; variable as_of.
CREATE OR REPLACE TEMP TABLE due_traces AS
SELECT DISTINCT trace_id
FROM core._trace_tasks
WHERE task_id IN (SELECT task_id FROM core.tasks WHERE next_due_at <= getvariable('as_of') AND NOT frozen)
  OR task_id IN (SELECT task_id FROM core._recheck);
