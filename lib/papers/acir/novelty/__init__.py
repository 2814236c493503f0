"""Queries that belong to no class of the archive (Sections 3.4 and 4.2)."""
