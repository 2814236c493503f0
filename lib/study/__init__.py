"""Results as people read them: tidy rows, published numbers beside ours, tables, the index and the comparison."""
