-- One task alone, as if everything of it were new (`rederive --explain`). Inputs: core._traces, core._trace_tasks; variable task_id.
CREATE OR REPLACE TEMP TABLE due_traces (trace_id VARCHAR);
CREATE OR REPLACE TEMP TABLE new_traces AS
SELECT *
FROM core._traces
WHERE trace_id IN (SELECT trace_id FROM core._trace_tasks WHERE task_id = getvariable('task_id'));
