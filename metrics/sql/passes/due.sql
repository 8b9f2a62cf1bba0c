-- The traces of tasks that the clock alone changes. Inputs: core.tasks, core._trace_tasks; variable as_of.
CREATE OR REPLACE TEMP TABLE due_traces AS
SELECT DISTINCT trace_id
FROM core._trace_tasks
WHERE task_id IN (SELECT task_id FROM core.tasks WHERE next_due_at <= getvariable('as_of') AND NOT frozen);
