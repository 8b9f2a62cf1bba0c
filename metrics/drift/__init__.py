"""Slow rises of cost and latency, told apart from the noise of days."""
