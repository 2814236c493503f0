"""Metrics by what they measure, each under a name that says its definition."""
