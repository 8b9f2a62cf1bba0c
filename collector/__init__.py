"""Receives OTLP, stores spans durably, and owns every DuckDB file."""
