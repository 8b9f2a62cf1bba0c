-- one row: what the filters of the incidents can choose from
-- inputs: incidents
SELECT
    list_sort(list(DISTINCT agent) FILTER (agent IS NOT NULL)) AS agents,
    list_sort(list(DISTINCT kind)) AS kinds,
    count(*) AS incidents
FROM incidents
