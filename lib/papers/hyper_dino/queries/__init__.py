"""Notebook 14: queries and their answers one by one (section 3.4), identical pictures, confusion."""
