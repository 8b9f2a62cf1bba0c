-- How many rows of this pass were there already: spans and log records that were delivered again.
-- Inputs: touched_spans, variables counted_seq (rows up to it were counted by an earlier pass) and upto (the last row of this one).
SELECT
  count(*) FILTER (WHERE seq > getvariable('counted_seq'))
  - count(DISTINCT (trace_id, span_id))
  + count(DISTINCT (trace_id, span_id)) FILTER (WHERE seq <= getvariable('counted_seq'))
FROM touched_spans
WHERE seq <= getvariable('upto')
