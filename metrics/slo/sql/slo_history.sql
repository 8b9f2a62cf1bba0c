-- grain: one row per objective and point in time
-- inputs: written by metrics.slo.history.write_history
CREATE TABLE IF NOT EXISTS {target} (
    slo VARCHAR, objective VARCHAR, "at" TIMESTAMP,
    n BIGINT, good BIGINT, bad BIGINT, sli DOUBLE, remaining DOUBLE, burn DOUBLE,
    step_n BIGINT, step_bad BIGINT, revision VARCHAR, target DOUBLE
)
