-- one row: how far the numbers are, and a mark that changes whenever a status changes
-- inputs: pipeline, spans, slo_status
SELECT
    p.derived_seq,
    p.as_of,
    p.last_pass_at,
    (SELECT max(seq) FROM spans) AS last_seq,
    coalesce(p.derived_seq >= (SELECT max(seq) FROM spans), true) AS derived,
    -- An objective's window ends at its evaluation, so this compares the last evaluation with the last pass.
    coalesce((SELECT max(window_end) FROM slo_status) >= p.as_of, true) AS evaluated,
    (
        SELECT bit_xor(hash(slo, objective, n, good, bad, unknown, state))::VARCHAR
        FROM slo_status
    ) AS status_mark
FROM pipeline p
