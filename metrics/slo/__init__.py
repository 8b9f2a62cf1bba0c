"""SLO arithmetic over `sli_events` and `tasks`: pure numbers, and counting in SQL."""
