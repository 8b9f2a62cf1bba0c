-- one row: alerts by state, and what their filters can choose from
-- inputs: alerts
SELECT
    count(*) FILTER (state = 'firing') AS firing,
    count(*) FILTER (state = 'frozen') AS frozen,
    count(*) FILTER (state = 'pending') AS pending,
    count(*) FILTER (state = 'resolved') AS resolved,
    count(*) FILTER (state IN ('firing', 'frozen') AND silenced_by IS NOT NULL) AS silenced,
    list_sort(list(DISTINCT agent) FILTER (agent <> '')) AS agents
FROM alerts
