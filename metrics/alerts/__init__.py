"""Alerts: when objectives or findings speak up, to whom, and until when."""
