"""A small page on an archive: ask with an image, see the nearest, compare, say yes or no, move about the map.

``make app`` serves it on this computer (:mod:`server`); ``make export`` writes it as files that need no server
(:mod:`export`). Both show the same files of ``page/``, which load nothing from elsewhere.
"""
