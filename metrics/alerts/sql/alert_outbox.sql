-- grain: one row per message to one target: waiting, delivered lately, or dead
-- inputs: written by metrics.alerts.engine and metrics.alerts.outbox
CREATE TABLE IF NOT EXISTS {target} (
    message_id VARCHAR, alert_id VARCHAR, target VARCHAR, event VARCHAR, message VARCHAR, created_at TIMESTAMP,
    attempts BIGINT, next_at TIMESTAMP, delivered_at TIMESTAMP, dead_at TIMESTAMP, error VARCHAR
)
