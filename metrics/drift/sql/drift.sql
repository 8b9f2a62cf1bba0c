-- grain: one row per metric (cost, latency), agent and task type
-- inputs: written by metrics.drift.evaluate.write_drift
CREATE TABLE IF NOT EXISTS {target} (
    metric VARCHAR, agent VARCHAR, task_type VARCHAR, state VARCHAR, opened_on DATE,
    baseline_start TIMESTAMP, baseline_end TIMESTAMP, window_start TIMESTAMP, window_end TIMESTAMP,
    baseline_days BIGINT, window_days BIGINT, baseline_n BIGINT, n BIGINT,
    baseline_typical DOUBLE, typical DOUBLE, shift DOUBLE, shift_lower DOUBLE, shift_upper DOUBLE,
    p DOUBLE, detectable DOUBLE, p_dearer DOUBLE, p90_ratio DOUBLE, p99_ratio DOUBLE,
    agent_mean_before DOUBLE, agent_mean DOUBLE, agent_mix DOUBLE, agent_rate DOUBLE, streams BIGINT
)
