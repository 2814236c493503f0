"""Notebook 34: content-guided ranking, Algorithm 1, Table 6 and Fig. 6."""
