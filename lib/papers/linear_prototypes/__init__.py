"""Linear prototypes: a short head on frozen foundation models, with few labels."""
