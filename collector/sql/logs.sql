-- grain: one row per received log record; a re-delivered record is a further row
-- inputs: OTLP log requests (collector.batch)
CREATE TABLE IF NOT EXISTS {database}.logs (
    seq         BIGINT,     -- same counter as spans.seq
    received_at TIMESTAMP,  -- UTC
    trace_id    VARCHAR,    -- NULL when the record belongs to no trace
    span_id     VARCHAR,
    time_ns     BIGINT,     -- NULL when the sender gave none
    observed_ns BIGINT,
    severity    VARCHAR,    -- severity text, else the name of the severity number
    event_name  VARCHAR,
    body        VARCHAR USING COMPRESSION zstd,  -- JSON value
    attributes  VARCHAR USING COMPRESSION zstd,  -- JSON object
    resource    VARCHAR USING COMPRESSION zstd,  -- JSON object
    service     VARCHAR,
    scope       VARCHAR
);
