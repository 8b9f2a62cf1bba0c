-- What is usual, after the pass, and whom it leaves to be decided again. Inputs: new_baselines, peers, old_tasks.
DELETE FROM core._recheck WHERE task_id IN (SELECT task_id FROM old_tasks);
INSERT INTO core._recheck SELECT task_id FROM peers;
DELETE FROM core.baselines b WHERE EXISTS (SELECT 1 FROM new_baselines n WHERE n.series = b.series AND n.day = b.day);
INSERT INTO core.baselines SELECT series, day, n, value, false FROM new_baselines;
