"""Nearest neighbours in any geometry: exact (:mod:`~lib.search.exact`), and by index (:mod:`~lib.search.index`).

Both rest on one fact (:mod:`~lib.search.inner`): for a fixed query, the order by Poincaré distance is an order by inner
product in d + 2 numbers. So matrix products, FAISS and vector databases can all serve hyperbolic embeddings. Vectors of
your network, a gallery (m, d) and queries (q, d), in the ball::

    from lib.geometry import PoincareBall
    from lib.geometry.scale import Scale
    from lib.search import nearest
    from lib.search.index import FaissHnsw

    ball = PoincareBall(c=1.0)
    scale = Scale.fit(gallery, ball, radius=0.1)  # vectors of your network, (m, d) and (q, d)
    gallery, query = scale(gallery), scale(query)  # into the ball, both by the gallery's factor

    distances, indices = nearest(query, gallery, k=20, geometry=ball)  # exact, in the order of float64

    index = FaissHnsw.build(gallery, ball, encoder="my encoder, weights of May")
    index.save(folder)
    distances, indices = FaissHnsw.load(folder, c=1.0).search(query, k=20)  # a graph, re-ranked by true distance

Without the scale, long vectors end on the rim, where distances are noise. Other spaces need none:
``geometry=Euclidean()`` or ``"euclidean"``, ``Sphere()`` or ``"sphere"``. FAISS and Qdrant are the extra ``index``.
"""

from lib.search.exact import nearest

__all__ = ["nearest"]
