"""Section 3.3 and supplement B: embeddings on the Poincaré disk (Fig. 2), and what such a picture can show."""
