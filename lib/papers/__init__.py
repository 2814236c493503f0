"""One room for each paper: what its notebooks need and nobody else does."""
