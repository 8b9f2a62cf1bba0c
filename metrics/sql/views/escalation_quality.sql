-- Grain: one row per agent, task type and window of days before the last pass, of tasks that objectives count.
-- Inputs: core.tasks, core.human_labels, core.interventions, core.findings, core.pipeline.
-- Precision: of the labelled tasks that asked, those that needed a human. Recall: of the tasks labelled as needing one,
-- those that asked. Both of labelled tasks only, with the share that is labelled beside them, and with the Wilson 95 %
-- interval (metrics/intervals.py).
-- Most tasks asked nobody and nobody labelled them: they are only counted, and whoever joins them joins a million for a few.
WITH asking AS (
  SELECT l.agent, l.task_type, l.decided_at, l.task_id, l.asked, l.needed, l.right_level
  FROM core.human_labels l
  WHERE l.eligible
),
-- worth a label: a claim that was false, or a person who stepped in unasked
suspects AS (
  SELECT task_id FROM core.findings WHERE kind = 'false_success'
  UNION
  SELECT task_id FROM core.interventions WHERE kind = 'take_over'
  EXCEPT
  SELECT task_id FROM core.human_labels WHERE asked OR needed IS NOT NULL
),
counted AS (
  SELECT agent, task_type, decided_at, 'task' AS what, NULL::BOOLEAN AS asked, NULL::BOOLEAN AS needed, NULL::BOOLEAN AS right_level
  FROM core.tasks
  WHERE eligible
  UNION ALL
  SELECT agent, task_type, decided_at, 'label', asked, needed, right_level FROM asking
  UNION ALL
  SELECT t.agent, t.task_type, t.decided_at, 'suspect', NULL, NULL, NULL
  FROM core.tasks t
  SEMI JOIN suspects s USING (task_id)
  WHERE t.eligible
),
bands AS (
  SELECT
    agent, task_type,
    CASE WHEN decided_at > p.as_of - to_days(7) THEN 7 WHEN decided_at > p.as_of - to_days(28) THEN 28 ELSE 90 END AS days,
    count(*) FILTER (WHERE what = 'task') AS tasks,
    count(*) FILTER (WHERE asked) AS asked,
    count(needed) AS labelled,
    count(needed) FILTER (WHERE asked) AS labelled_asked,
    count(*) FILTER (WHERE needed) AS needed,
    count(*) FILTER (WHERE needed AND asked) AS needed_asked,
    count(*) FILTER (WHERE needed AND NOT asked) AS missed,
    count(*) FILTER (WHERE what = 'suspect') AS suspected_missed,
    count(right_level) AS level_known,
    count(*) FILTER (WHERE right_level) AS right_level
  FROM counted c
  CROSS JOIN core.pipeline p
  WHERE decided_at > p.as_of - to_days(90) AND decided_at <= p.as_of
  GROUP BY agent, task_type, days
),
-- a longer window holds the shorter ones
counts AS (
  SELECT
    b.agent, b.task_type, w.days,
    sum(b.tasks)::BIGINT AS tasks, sum(b.asked)::BIGINT AS asked, sum(b.labelled)::BIGINT AS labelled,
    sum(b.labelled_asked)::BIGINT AS labelled_asked, sum(b.needed)::BIGINT AS needed, sum(b.needed_asked)::BIGINT AS needed_asked,
    sum(b.missed)::BIGINT AS missed, sum(b.suspected_missed)::BIGINT AS suspected_missed,
    sum(b.level_known)::BIGINT AS level_known, sum(b.right_level)::BIGINT AS right_level
  FROM bands b
  JOIN (SELECT unnest([7, 28, 90]) AS days) w ON b.days <= w.days
  GROUP BY b.agent, b.task_type, w.days
),
shares AS (
  SELECT *, needed_asked / nullif(labelled_asked, 0) AS precision, needed_asked / nullif(needed, 0) AS recall FROM counts
)
SELECT
  agent, task_type, days, tasks, asked, labelled, labelled_asked,
  labelled / tasks AS label_coverage,
  labelled_asked / nullif(asked, 0) AS asked_coverage,
  needed, needed_asked, missed, suspected_missed,
  precision,
  {{wilson_lower(needed_asked, labelled_asked)}} AS precision_lower,
  {{wilson_upper(needed_asked, labelled_asked)}} AS precision_upper,
  recall,
  {{wilson_lower(needed_asked, needed)}} AS recall_lower,
  {{wilson_upper(needed_asked, needed)}} AS recall_upper,
  level_known, right_level
FROM shares
