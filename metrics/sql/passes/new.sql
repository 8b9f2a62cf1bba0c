-- The traces of the next spans, without those that retention froze and those that are parked.
-- Inputs: fresh (seq, trace_id, start_ns of spans after the watermark), core._frozen_traces, core.parked_traces.
CREATE OR REPLACE TEMP TABLE new_traces AS
SELECT trace_id, min(start_ns) AS first_ns, max(start_ns) AS last_ns
FROM fresh
WHERE trace_id NOT IN (SELECT trace_id FROM core._frozen_traces) AND trace_id NOT IN (SELECT trace_id FROM core.parked_traces)
GROUP BY trace_id;
CREATE OR REPLACE TEMP TABLE late_spans AS
SELECT seq FROM fresh WHERE trace_id IN (SELECT trace_id FROM core._frozen_traces);
