-- The time that the touched traces span, in what is kept and in what replaces it. Inputs: old_traces, steps.
SET VARIABLE low = (SELECT coalesce(min(ns), 0) FROM (SELECT min(first_ns) AS ns FROM old_traces UNION ALL SELECT min(start_ns) FROM steps));
SET VARIABLE high = (SELECT coalesce(max(ns), -1) FROM (SELECT max(last_ns) AS ns FROM old_traces UNION ALL SELECT max(start_ns) FROM steps));
