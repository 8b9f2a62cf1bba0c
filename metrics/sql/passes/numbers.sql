-- Folders made before traces had numbers. Inputs: core._join_keys, core._trace_tasks.
CREATE OR REPLACE TEMP TABLE numbered AS SELECT key, md5_number_lower(trace_id) AS trace FROM core._join_keys;
CREATE OR REPLACE TABLE core._join_keys (key UBIGINT, trace UBIGINT, gate UBIGINT);
INSERT INTO core._join_keys SELECT key, trace, NULL FROM numbered;
CREATE OR REPLACE TEMP TABLE numbered AS SELECT trace_id, task_id FROM core._trace_tasks;
CREATE OR REPLACE TABLE core._trace_tasks (trace_id VARCHAR, task_id VARCHAR, trace UBIGINT, task UBIGINT);
INSERT INTO core._trace_tasks SELECT trace_id, task_id, md5_number_lower(trace_id), md5_number_lower(task_id) FROM numbered;
DROP TABLE numbered;
