"""One module per paper; every loss takes embeddings, labels and a geometry, and knows nothing of files or training."""
