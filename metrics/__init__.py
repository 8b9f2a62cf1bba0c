"""From spans to service level objectives, in SQL."""
