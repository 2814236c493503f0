"""Tables 1 to 3: what each objective's embeddings know of the tree (sections 4.3 to 4.5)."""
