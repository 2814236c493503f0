"""Trees from nested groups, class names that tell the way, YAML files, and graphs of classes with several parents."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import yaml

from lib.errors import InputError
from lib.taxonomy.tree import Taxonomy, few, steps

ROOT = "root"
"""What the root is called where a tree is read from a list of classes."""


def from_nested(name: str, nested: Mapping[str, Any] | Sequence[Any], root: str = ROOT) -> Taxonomy:
    """The tree of nested groups: a group → its groups or classes; a list of classes; nothing below a class.

    Raises:
        InputError: for a name that stands at two places (it would have two parents), and as :class:`Taxonomy`.

    >>> print(from_nested("skin", {"melanocytic": ["mel", "nv"], "vasc": None}))
    skin: 3 leaves below 1 groups, depth 2
    """
    edges = list(_edges(name, nested, root))
    if root in (node for node, _ in edges):
        raise InputError(f"{name}: a class is called {root!r}, as the root is; give the root another name")
    places = Counter(node for node, _ in edges)
    if twice := [node for node, count in places.items() if count > 1]:
        above = [parent for node, parent in edges if node == twice[0]]
        raise InputError(
            f"{name}: {twice[0]!r} has {len(above)} parents ({few(above)}); a class stands at one place of a tree"
        )
    return Taxonomy(name, dict(edges))


def from_paths(name: str, paths: Iterable[str], separator: str = "/") -> Taxonomy:
    """The tree of class names that tell the way: "colon/tumour/solid", as nested folders do.

    A node is called by its whole prefix, so that two "other" below different parents are two nodes, and a leaf by the
    path as given; the root is called "root".

    Raises:
        InputError: for a class that is a group of other classes too, an empty part, and as :class:`Taxonomy`.

    >>> from_paths("mine", ["colon/other", "colon/tumour", "breast/other"]).ancestors("colon/other")
    ('root', 'colon', 'colon/other')
    """
    paths = sorted(set(paths))
    parents: dict[str, str] = {}
    for path in paths:
        parts = path.split(separator)
        if not all(part.strip() for part in parts):
            raise InputError(f"{name}: {path!r} has an empty part; write it as group{separator}class")
        way = [ROOT, *(separator.join(parts[: n + 1]) for n in range(len(parts)))]
        parents.update(zip(way[1:], way[:-1], strict=True))
    if both := sorted(set(paths) & set(parents.values())):
        raise InputError(
            f"{name}: {both[0]!r} is a class and a group of classes at once; give its own images a class "
            f"such as {both[0]}{separator}other"
        )
    return Taxonomy(name, parents)


def from_yaml(path: str | Path) -> Taxonomy:
    """The tree of a YAML file with ``name`` (if not that of the file), ``root`` (if not "root") and ``tree``.

    Raises:
        InputError: for a file that is missing, not YAML, or without a ``tree``, and as :func:`from_nested`.
    """
    path = Path(path)
    try:
        found = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)
    except OSError as error:
        raise InputError(f"{path}: this taxonomy cannot be read ({error.strerror})") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: this taxonomy is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(found, dict) or not isinstance(found.get("tree"), dict | list):
        raise InputError(f"{path}: a taxonomy needs 'tree:' and below it its groups, each with its classes")
    if unknown := sorted(set(map(str, found)) - {"name", "root", "tree"}):
        raise InputError(f"{path}: {unknown[0]!r} means nothing here; known are name, root and tree")
    return from_nested(str(found.get("name", path.stem)), found["tree"], str(found.get("root", ROOT)))


def from_dag(name: str, parents: Mapping[str, Sequence[str]], counts: Mapping[str, int]) -> Taxonomy:
    """The tree that a graph of classes with several parents becomes (*Climbing the Label Tree*, section 4.1).

    Each node keeps the parent nearest to the root (by the shortest way); of several the one with more training images
    below it; of several the first by name. A group that loses all its classes so is left out.

    Args:
        parents: every node but the root → its parents.
        counts: classes → their images in the training split; a class that is not named has none.

    Raises:
        InputError: for images of a group or of an unknown class, two roots, a circle, and as :class:`Taxonomy`.

    >>> graph = {"metabolic": ["eye"], "vascular": ["eye"], "diabetes": ["metabolic", "vascular"]}
    >>> graph |= {"gout": ["metabolic"], "hypertension": ["vascular"]}
    >>> from_dag("odir", graph, {"diabetes": 9, "gout": 1, "hypertension": 3}).parents["diabetes"]
    'vascular'
    """
    below: dict[str, list[str]] = {}
    for node, several in parents.items():
        for parent in several:
            below.setdefault(parent, []).append(node)
    roots = sorted((set(below) | set(parents)) - {node for node, several in parents.items() if several})
    if len(roots) != 1:
        what = f"{len(roots)} roots ({few(roots)})" if roots else "no root: there is a circle of parents"
        raise InputError(f"{name} has {what}; it needs one node without parents")
    depths = steps(roots[0], below)
    if lost := sorted(set(parents) - set(depths)):
        raise InputError(f"{name}: {few(lost)} never reach the root {roots[0]}: there is a circle of parents")
    for node in counts:
        if node not in depths or node in below:
            why = "stands for a group of classes" if node in below else "is not in it"
            raise InputError(f"{name}: images are counted for {node!r}, which {why}")
    images = {node: sum(counts.get(kin, 0) for kin in steps(node, below)) for node in depths}
    tree = {
        node: min(several, key=lambda parent: (depths[parent], -images[parent], parent))
        for node, several in parents.items()
        if several
    }
    while empty := (set(tree) & set(below)) - set(tree.values()):
        tree = {node: parent for node, parent in tree.items() if node not in empty}
    return Taxonomy(name, tree)


def _edges(name: str, nested: Any, parent: str) -> Iterable[tuple[str, str]]:
    """The pairs (node, parent) of nested groups, as :func:`from_nested` takes them."""
    if nested is None:
        return
    if isinstance(nested, Mapping):
        for node, rest in nested.items():
            yield str(node), parent
            yield from _edges(name, rest, str(node))
    elif isinstance(nested, Sequence) and not isinstance(nested, str | bytes):
        for item in nested:
            yield from _edges(name, item if isinstance(item, Mapping) else {item: None}, parent)
    else:
        raise InputError(f"{name}: below {parent!r} stands {nested!r}; write its classes as a list, [{nested}]")


class _Loader(yaml.SafeLoader):
    """Reads every name as text (no, 1e5 and 2024 are classes too) and refuses a group that is named twice."""

    yaml_implicit_resolvers: ClassVar = {
        sign: [(tag, pattern) for tag, pattern in resolvers if tag.endswith((":null", ":merge"))]
        for sign, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        names = [self.construct_object(key, deep=True) for key, _ in node.value]
        if twice := [one for one, count in Counter(map(str, names)).items() if count > 1]:
            raise yaml.constructor.ConstructorError(None, None, f"{twice[0]!r} is named twice", node.start_mark)
        return super().construct_mapping(node, deep)
