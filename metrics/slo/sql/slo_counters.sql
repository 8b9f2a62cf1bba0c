-- grain: one row per objective (and per agent and task type it is split into): events counted so far
-- inputs: written by metrics.slo.counters.write_counters
CREATE TABLE IF NOT EXISTS {target} (
    slo VARCHAR, objective VARCHAR, agent VARCHAR, task_type VARCHAR, split BOOLEAN,
    good BIGINT, bad BIGINT, unknown BIGINT, excluded BIGINT, counted_until TIMESTAMP
)
