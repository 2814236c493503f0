"""Compact and hyperbolic embeddings for (medical) image retrieval: the small library behind the notebooks.

A room imports only rooms on lower floors:

1. ``errors`` ``checks`` ``paths`` ``files`` ``fingerprints`` ``processes`` ``progress`` ``pins`` ``pinned``
   ``devices`` ``geometry`` ``taxonomy``: messages for people, what a setting may be, where files are and how they are
   written, what code computes, long work, the same bits on every processor, CPU or GPU, points and distances, label
   trees
2. ``losses`` ``heads`` ``metrics``, ``datasets`` ``encoders``
3. ``training`` ``search``
4. ``study`` ``figures`` ``widgets``: what queries got, declared tables, paired tests; plots as pure functions; sliders
5. ``papers``: one room for each, a module for each notebook
6. ``archive``: images of one's own, which method serves them, and something to ask
7. ``pipeline``: running the whole house
"""
