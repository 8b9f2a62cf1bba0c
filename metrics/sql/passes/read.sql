-- Every raw row of the new traces. Bounded by time, so that zone maps do the work of an index.
-- Inputs: spans, new_traces, core._traces.
CREATE OR REPLACE TEMP TABLE known_new AS
SELECT t.* FROM core._traces t SEMI JOIN new_traces n ON n.trace_id = t.trace_id;
CREATE OR REPLACE TEMP TABLE read_between AS
SELECT coalesce(min(first_ns), 0) AS low, coalesce(max(last_ns), -1) AS high
FROM (SELECT first_ns, last_ns FROM known_new UNION ALL SELECT first_ns, last_ns FROM new_traces);
SET VARIABLE low = (SELECT low FROM read_between);
SET VARIABLE high = (SELECT high FROM read_between);
CREATE OR REPLACE TEMP TABLE touched_spans AS
SELECT s.*
FROM spans s
SEMI JOIN new_traces n ON n.trace_id = s.trace_id
WHERE s.start_ns BETWEEN getvariable('low') AND getvariable('high');
