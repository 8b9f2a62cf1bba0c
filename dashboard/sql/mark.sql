-- one row: which state of the derived data this is
-- inputs: pipeline, tasks
SELECT derived_seq, as_of, (SELECT max(decided_at) FROM tasks) AS last_decided, (SELECT count(*) FROM tasks) AS tasks
FROM pipeline
