-- grain: one row per word of an operator that a stream's baseline begins anew
-- inputs: written by metrics.drift.baselines
CREATE TABLE IF NOT EXISTS {target} (
    metric VARCHAR, agent VARCHAR, task_type VARCHAR, since TIMESTAMP, reason VARCHAR, said_at TIMESTAMP
)
