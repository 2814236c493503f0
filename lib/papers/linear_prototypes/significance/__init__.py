"""Notebook 42: how sure a gain is (Fig. 3), and how often its interval holds."""
