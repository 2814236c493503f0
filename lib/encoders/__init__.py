"""Images to vectors: the texture descriptor, frozen backbones, and features cached with their provenance."""
