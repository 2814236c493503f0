"""Images with labels and groups: one table per dataset, and folds over it."""
