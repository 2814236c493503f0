"""The losses of sections 3.1 to 3.4, taken apart."""
