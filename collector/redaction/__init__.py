"""Secrets and personal data out of spans and log records, before anything is written."""
