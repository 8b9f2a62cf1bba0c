"""Streamlit pages over the collector's query door."""
