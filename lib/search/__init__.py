"""Nearest neighbours in any geometry: exact (:mod:`~lib.search.exact`), and by index (:mod:`~lib.search.index`).

Both rest on one fact (:mod:`~lib.search.inner`): for a fixed query, the order by Poincaré distance is an order by inner
product in d + 2 numbers. So matrix products, FAISS and vector databases can all serve hyperbolic embeddings.
"""

from lib.search.exact import nearest

__all__ = ["nearest"]
