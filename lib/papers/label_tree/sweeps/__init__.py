"""Fig. 2 and the plateau of section 5: the temperature, and α and γ, on images that no table tests."""
