-- one row per public view
-- inputs: the catalog
SELECT view_name
FROM duckdb_views()
WHERE NOT internal AND database_name = current_database()
