"""Fit heads on cached features: ``fit`` knows one head, one module per paper knows that paper's experiment."""
