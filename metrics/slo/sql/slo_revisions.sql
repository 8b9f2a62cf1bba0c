-- grain: one row per word on which definition of an objective holds since when; only added to
-- inputs: written by metrics.slo.revisions
CREATE TABLE IF NOT EXISTS {target} (
    noted_no BIGINT, noted_at TIMESTAMP, slo VARCHAR, objective VARCHAR, revision VARCHAR, basis VARCHAR,
    target VARCHAR, since TIMESTAMP, reason VARCHAR, said_by VARCHAR
)
