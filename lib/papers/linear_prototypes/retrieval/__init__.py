"""Notebook 41: retrieval with frozen and with trained embeddings (Fig. 2)."""
