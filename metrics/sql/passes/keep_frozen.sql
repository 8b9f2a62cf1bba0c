-- What `freeze` found is decided for good: no key leads to it any more, and what it said is gone.
-- Inputs: frozen_tasks, frozen_traces.
INSERT INTO core._frozen_traces SELECT trace_id FROM frozen_traces;
UPDATE core.tasks SET frozen = true, next_due_at = NULL WHERE task_id IN (SELECT task_id FROM frozen_tasks);
UPDATE core.actions SET arguments = NULL WHERE task_id IN (SELECT task_id FROM frozen_tasks);
DELETE FROM core._join_keys WHERE trace IN (SELECT md5_number_lower(trace_id) FROM frozen_traces);
DELETE FROM core._traces WHERE trace_id IN (SELECT trace_id FROM frozen_traces);
DELETE FROM core._trace_tasks WHERE trace_id IN (SELECT trace_id FROM frozen_traces);
DELETE FROM core._recheck WHERE task_id IN (SELECT task_id FROM frozen_tasks);
