-- one row: what is stored, and how far the derivation is
-- inputs: spans, logs, pipeline
SELECT
    (SELECT count(*) FROM spans) AS spans,
    (SELECT count(*) FROM logs) AS logs,
    (SELECT max(received_at) FROM spans) AS last_received,
    (SELECT max(seq) FROM spans) - p.derived_seq AS not_derived,
    p.as_of,
    p.last_pass_at
FROM pipeline p
