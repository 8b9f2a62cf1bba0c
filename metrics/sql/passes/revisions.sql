-- A decided verdict that changes is a row in `revisions`; silently it never does.
-- Inputs: old_events, sli_events, core.label_log, core.pipeline; variable as_of.
INSERT INTO core.revisions
SELECT
  o.task_id, o.sli, o.subject_id, o.verdict, coalesce(n.verdict, 'withdrawn'), getvariable('as_of'),
  CASE
    WHEN o.task_id <> n.task_id THEN 'joined'
    -- a person said something of the task since the last pass
    WHEN o.sli IN ('escalation_precision', 'escalation_recall')
      AND EXISTS (SELECT 1 FROM core.label_log l, core.pipeline p WHERE l.task_id = o.task_id AND l.said_at >= p.last_pass_at) THEN 'label'
    ELSE 'late_span'
  END
FROM old_events o
LEFT JOIN sli_events n ON n.sli = o.sli AND n.subject_id = o.subject_id
WHERE o.verdict IN ('good', 'bad') AND o.settled AND coalesce(n.verdict, 'withdrawn') <> o.verdict;
