-- one row: how far the numbers are, and a mark that changes whenever a status changes
-- inputs: pipeline, spans, slo_status
SELECT
    p.derived_seq,
    p.as_of,
    p.last_pass_at,
    (SELECT max(seq) FROM spans) AS last_seq,
    coalesce(p.derived_seq >= (SELECT max(seq) FROM spans), true) AS derived,
    -- A pass may find nothing new and move on while the statuses stay those of an evaluation before it.
    s.evaluated_at,
    coalesce(s.evaluated_at >= p.as_of, true) AS evaluated,
    (
        SELECT bit_xor(hash(slo, objective, n, good, bad, unknown, state))::VARCHAR
        FROM slo_status
    ) AS status_mark
FROM pipeline p
CROSS JOIN (
    -- By way of JSON: a folder of an older version has no such column until it is evaluated again.
    SELECT max(try_cast(to_json(r) ->> 'evaluated_at' AS TIMESTAMP)) AS evaluated_at
    FROM slo_status r
) s
