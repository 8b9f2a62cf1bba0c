-- Grain: one row per task of which a person said whether it needed a human: the last word counts.
-- Inputs: core.label_log, core.task_aliases.
-- A label given under an id that has joined another task is that task's.
SELECT
  coalesce(a.task_id, l.task_id) AS task_id,
  max_by(struct_pack(needed := l.needed, note := l.note, said_by := l.said_by, said_at := l.said_at), l.said_no) AS word
FROM core.label_log l
LEFT JOIN (SELECT alias, min(task_id) AS task_id FROM core.task_aliases GROUP BY alias) a ON a.alias = l.task_id
GROUP BY ALL
