-- Grain: one row per case of which a person said something: the last word, and the content it was said of.
-- Inputs: cases; parameter ids (VARCHAR[]).
SELECT case_id, said_state, case_set, seen_hash, said_by, said_at, note
FROM cases
WHERE said_state IS NOT NULL AND case_id IN (SELECT unnest($ids::VARCHAR[]))
