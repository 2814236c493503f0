"""Nearest neighbours in any geometry: exact (:mod:`~lib.search.exact`), and by index (:mod:`~lib.search.index`).

Both rest on one fact (:mod:`~lib.geometry.inner`): for a fixed query, the order by Poincaré distance is an order by
inner product in d + 2 numbers. So matrix products, FAISS and vector databases can all serve hyperbolic embeddings.
Vectors of your network, a gallery (m, d) and queries (q, d), in the ball::

    from lib.geometry import PoincareBall
    from lib.geometry.scale import Scale
    from lib.search import nearest
    from lib.search.local import Exact

    ball = PoincareBall(c=1.0)
    scale = Scale.fit(gallery, ball, radius=0.1)  # vectors of your network, (m, d) and (q, d)
    gallery, query = scale(gallery), scale(query)  # into the ball, both by the gallery's factor

    distances, indices = nearest(query, gallery, k=20, geometry=ball)  # exact, in the order of float64

    index = Exact.build(gallery, ball, encoder="my encoder, weights of May", fields={"patient": patients})
    index.save(folder)
    index = Exact.load(folder, c=1.0)  # prepared once: the same answers, many times sooner
    distances, ids = index.search(query, k=20, without={"patient": ["p17"]})

Without the scale, long vectors end on the rim, where distances are noise. Other spaces need none:
``geometry=Euclidean()`` or ``"euclidean"``, ``Sphere()`` or ``"sphere"``. What else than
:class:`~lib.search.local.Exact` there is: :class:`~lib.search.quick.Quick`, by FAISS, of the extra ``index``.
"""

from lib.search.exact import nearest

__all__ = ["nearest"]
