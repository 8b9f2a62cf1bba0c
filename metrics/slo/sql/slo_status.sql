-- grain: one row per objective, as of the last evaluation
-- inputs: written by metrics.slo.evaluate.write_status
CREATE TABLE IF NOT EXISTS {target} (
    slo VARCHAR, objective VARCHAR, revision VARCHAR,
    window_start TIMESTAMP, window_end TIMESTAMP, settled_until TIMESTAMP, evaluated_at TIMESTAMP,
    n BIGINT, good BIGINT, bad BIGINT, unknown BIGINT, excluded BIGINT,
    sli DOUBLE, lower DOUBLE, upper DOUBLE, sli_unknown_bad DOUBLE, sli_unknown_good DOUBLE, p_met DOUBLE,
    target DOUBLE, budget_events DOUBLE, remaining DOUBLE,
    burn VARCHAR, exhaustion VARCHAR, state VARCHAR, firing VARCHAR,
    sli_name VARCHAR, title VARCHAR, unit VARCHAR, op VARCHAR, cut DOUBLE, description VARCHAR,
    inferred_share DOUBLE, pairs VARCHAR, excluded_by VARCHAR, notes VARCHAR, runbook VARCHAR, service VARCHAR,
    agent VARCHAR, task_type VARCHAR, split BOOLEAN, last_event_at TIMESTAMP, budgeting VARCHAR, is_floor BOOLEAN
)
