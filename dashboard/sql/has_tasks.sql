-- one row: whether there is anything to show
-- inputs: tasks
SELECT EXISTS (FROM tasks) AS found
