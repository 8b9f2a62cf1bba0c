-- grain: one row per event of one class of one objective in (start, end], the farthest beyond the cut or the newest first
-- inputs: rows of sli_events or tasks (event_rows.sql, task_rows.sql)
-- Classes are those of counts.sql, written out for each, so that a scan can apply what is left of the one asked for. The
-- rows shown are found by narrow columns among millions, and the others read for them alone: so the total is counted
-- apart, and nothing is grouped by task.
WITH rows AS NOT MATERIALIZED ({rows}), counted AS NOT MATERIALIZED (
    -- An unknown event is bad from the moment its policy says so, and unknown until then.
    SELECT task_id, event_time, value, agent, task_type, verdict, excluded_reason, {by_environment} AS by_environment,
           CASE WHEN $class IN ('bad', 'unknown') AND (verdict = 'unknown' OR {unmeasured})
                THEN event_time + to_seconds($due::BIGINT) END AS due_at,
           CASE WHEN $class = 'bad' THEN coalesce(due_at, event_time) ELSE event_time END AS counted_at
    FROM rows
    WHERE {where}
      AND event_time > $start::TIMESTAMP - to_seconds(CASE WHEN $class = 'bad' THEN coalesce($due::BIGINT, 0) ELSE 0 END)
      AND event_time <= $end::TIMESTAMP
      AND CASE $class
          WHEN 'good' THEN verdict = 'good' AND NOT {unmeasured} AND {within} AND NOT coalesce({excluded}, FALSE)
          WHEN 'unknown' THEN (verdict = 'unknown' OR {unmeasured}) AND NOT {by_environment}
              AND coalesce(event_time + to_seconds($due::BIGINT) > $end::TIMESTAMP, TRUE)
          WHEN 'bad' THEN CASE
              WHEN verdict = 'excluded' OR {by_environment} THEN FALSE
              WHEN verdict = 'unknown' OR {unmeasured}
                  THEN coalesce(event_time + to_seconds($due::BIGINT) <= $end::TIMESTAMP, FALSE)
              ELSE (verdict = 'bad' OR NOT coalesce({within}, FALSE)) AND NOT coalesce({excluded}, FALSE)
          END
          ELSE verdict = 'excluded' OR {by_environment} OR {excluded} AND NOT {unmeasured}
      END
), total AS MATERIALIZED (
    SELECT count(*) AS matching FROM counted WHERE counted_at > $start::TIMESTAMP
), shown AS MATERIALIZED (
    SELECT * FROM counted WHERE counted_at > $start::TIMESTAMP
    ORDER BY {worst_first} counted_at DESC, task_id
    LIMIT $most::BIGINT
)
SELECT counted_at, task_id, agent, task_type, value,
       CASE WHEN $class = 'unknown' THEN due_at END AS turns_bad_at,
       CASE $class
           WHEN 'bad' THEN CASE WHEN due_at IS NOT NULL THEN 'unknown_too_long' END
           WHEN 'excluded' THEN CASE WHEN verdict = 'excluded' THEN coalesce(excluded_reason, 'unnamed')
               WHEN by_environment THEN 'environment'
               ELSE 'evidence_inferred' END
       END AS reason,
       matching
FROM shown, total
ORDER BY {worst_first} counted_at DESC, task_id
