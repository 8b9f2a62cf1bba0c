-- Which traces and keys lead to which tasks, after the pass.
-- Inputs: task_runs, steps, old_traces, old_tasks, known_new, touched_keys; variable labels_upto.
DELETE FROM core.task_aliases WHERE task_id IN (SELECT task_id FROM old_tasks);
INSERT INTO core.task_aliases SELECT DISTINCT own_id, task_id FROM task_runs WHERE own_id <> task_id;
DELETE FROM core._trace_tasks WHERE trace IN (SELECT md5_number_lower(trace_id) FROM old_traces);
DELETE FROM core._traces WHERE trace_id IN (SELECT trace_id FROM old_traces);
INSERT INTO core._trace_tasks
SELECT DISTINCT trace_id, task_id, md5_number_lower(trace_id), md5_number_lower(task_id) FROM task_runs;
INSERT INTO core._traces SELECT trace_id, min(start_ns), max(start_ns) FROM steps GROUP BY trace_id;
DELETE FROM core._join_keys WHERE trace IN (SELECT md5_number_lower(trace_id) FROM known_new);
INSERT INTO core._join_keys SELECT key, md5_number_lower(trace_id), gate FROM touched_keys;
UPDATE core._labels_seen SET said_no = getvariable('labels_upto') WHERE said_no < getvariable('labels_upto');
