"""Plots as pure functions: tidy rows in, a matplotlib figure out; nothing is read, written or shown here."""
