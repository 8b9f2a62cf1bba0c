-- one row: what is stored and not in any number yet: spans that wait to be derived, traces that were set aside
-- inputs: spans, pipeline, parked_traces
WITH waiting AS (
    SELECT count(*) AS spans, min(received_at) AS since FROM spans WHERE seq > (SELECT derived_seq FROM pipeline)
)
SELECT
    w.spans AS waiting,
    w.since AS waiting_since,
    p.last_pass_at,
    (SELECT count(*) FROM parked_traces) AS parked,
    (SELECT arg_max(error, parked_at) FROM parked_traces) AS parked_error
FROM waiting w, pipeline p
