"""Section 3.4: what the settings of the head change, and what the network sees of an image (Tables 4 and 5)."""
