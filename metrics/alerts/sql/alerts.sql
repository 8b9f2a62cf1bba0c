-- grain: one row per alert that is pending, active or ended within the last week
-- inputs: written by metrics.alerts.engine
CREATE TABLE IF NOT EXISTS {target} (
    alert_id VARCHAR, kind VARCHAR, slo VARCHAR, objective VARCHAR, severity VARCHAR, service VARCHAR,
    agent VARCHAR, task_type VARCHAR, tool VARCHAR, state VARCHAR, pending_since TIMESTAMP, fired_at TIMESTAMP,
    resolved_at TIMESTAMP, told_at TIMESTAMP, changed_at TIMESTAMP, summary VARCHAR, annotations VARCHAR,
    subjects VARCHAR, tasks VARCHAR, after_s DOUBLE, longest_s BIGINT, silenced_by VARCHAR, reason VARCHAR,
    targets VARCHAR, tell_end BOOLEAN
)
