-- grain: one row per silence an operator asked for
-- inputs: written by metrics.alerts.silences
CREATE TABLE IF NOT EXISTS {target} (
    silence_id VARCHAR, starts_at TIMESTAMP, ends_at TIMESTAMP, slo VARCHAR, agent VARCHAR, severity VARCHAR,
    reason VARCHAR, created_at TIMESTAMP, ended_at TIMESTAMP
)
