"""Notebook 92: bytes, search and servers."""
