-- The traces of the next spans. Inputs: fresh (seq, trace_id, start_ns of spans after the watermark).
CREATE OR REPLACE TEMP TABLE new_traces AS
SELECT trace_id, min(start_ns) AS first_ns, max(start_ns) AS last_ns FROM fresh GROUP BY trace_id;
