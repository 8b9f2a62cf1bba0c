-- The traces of which spans go away at the end of retention, and their tasks.
-- Inputs: spans, log_spans, core._trace_tasks; variable gone_seq: every row up to it goes.
CREATE OR REPLACE TEMP TABLE gone_traces AS
SELECT DISTINCT trace_id FROM spans WHERE seq <= getvariable('gone_seq')
UNION
SELECT DISTINCT trace_id FROM log_spans WHERE seq <= getvariable('gone_seq');
CREATE OR REPLACE TEMP TABLE frozen_tasks AS
SELECT DISTINCT t.task_id FROM core._trace_tasks t SEMI JOIN gone_traces g ON g.trace_id = t.trace_id;
CREATE OR REPLACE TEMP TABLE frozen_traces AS
SELECT t.trace_id FROM core._trace_tasks t SEMI JOIN frozen_tasks f ON f.task_id = t.task_id
UNION
SELECT trace_id FROM gone_traces
EXCEPT
SELECT trace_id FROM core._frozen_traces;
