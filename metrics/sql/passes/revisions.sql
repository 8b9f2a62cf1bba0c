-- A decided verdict that changes is a row in `revisions`; silently it never does.
-- Inputs: old_events, sli_events; variable as_of.
INSERT INTO core.revisions
SELECT
  o.task_id, o.sli, o.subject_id, o.verdict, coalesce(n.verdict, 'withdrawn'), getvariable('as_of'),
  CASE WHEN o.task_id <> n.task_id THEN 'joined' ELSE 'late_span' END
FROM old_events o
LEFT JOIN sli_events n ON n.sli = o.sli AND n.subject_id = o.subject_id
WHERE o.verdict IN ('good', 'bad') AND o.settled AND coalesce(n.verdict, 'withdrawn') <> o.verdict;
