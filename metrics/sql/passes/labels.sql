-- What people said of tasks: whether they needed a human. Only added to; of one task the highest `said_no` counts.
-- `needed` NULL: a person looked and could not tell. No pass and no rebuild removes anything here.
CREATE TABLE IF NOT EXISTS core.label_log (
  said_no BIGINT, said_at TIMESTAMP, task_id VARCHAR, needed BOOLEAN, note VARCHAR, said_by VARCHAR
);
-- up to which word of them the tasks have been decided
CREATE TABLE IF NOT EXISTS core._labels_seen (said_no BIGINT);
INSERT INTO core._labels_seen SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM core._labels_seen);
