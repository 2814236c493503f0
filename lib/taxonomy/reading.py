"""Trees from nested groups, class names that tell the way, YAML files, and graphs of classes with several parents."""

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import yaml

from lib import checks
from lib.checks import spelled
from lib.errors import InputError
from lib.taxonomy.tree import Taxonomy, few, refuse_text, spellings, steps

ROOT = "root"
"""What the root is called where a tree is read from a list of classes."""

DEEP = "its groups are nested hundreds deep, which no tree of classes is; look for brackets that are never closed"


def from_nested(name: str, nested: Mapping[str, Any] | Sequence[Any], root: str = ROOT) -> Taxonomy:
    """The tree of nested groups: a group → its groups or classes; a list of classes; nothing below a class.

    Raises:
        InputError: for a name that stands at two places (it would have two parents), a group without classes, an empty
            item, a name that is no text, groups nested hundreds deep, and as :class:`Taxonomy`.

    >>> print(from_nested("skin", {"melanocytic": ["mel", "nv"], "vasc": None}))
    skin: 3 leaves below 1 groups, depth 2
    """
    try:
        edges = list(_edges(name, nested, (root,)))
    except RecursionError:
        raise InputError(f"{name}: {DEEP}") from None
    places = Counter(node for node, _ in edges)
    _refuse_root(name, places, root)
    if twice := [node for node, count in places.items() if count > 1]:
        above = list(dict.fromkeys(parent for node, parent in edges if node == twice[0]))
        if len(above) == 1:
            raise InputError(f"{name}: {twice[0]!r} stands {places[twice[0]]} times below {above[0]!r}; name it once")
        raise InputError(
            f"{name}: {twice[0]!r} has {len(above)} parents ({few(above)}); a class stands at one place of a tree"
        )
    return Taxonomy(name, dict(edges))


def from_paths(name: str, paths: Iterable[str], separator: str = "/") -> Taxonomy:
    """The tree of class names that tell the way: "colon/tumour/solid", as nested folders do.

    A node is called by its whole prefix, so that two "other" below different parents are two nodes, and a leaf by the
    path as given; the root is called "root".

    Raises:
        InputError: for a row without a label, a class that is a group of other classes too, an empty part, a blank at
            the edge of one, and as :class:`Taxonomy`.

    >>> from_paths("mine", ["colon/other", "colon/tumour", "breast/other"]).ancestors("colon/other")
    ('root', 'colon', 'colon/other')
    """
    if not separator:
        raise InputError(f"{name}: the separator is empty; name what stands between a group and its class, such as '/'")
    paths = _labels(name, paths)
    parents: dict[str, str] = {}
    for path in paths:
        parts = _parts(name, path, separator)
        way = [ROOT, *(separator.join(parts[: n + 1]) for n in range(len(parts)))]
        parents.update(zip(way[1:], way[:-1], strict=True))
    _refuse_root(name, parents, ROOT)
    if both := sorted(set(paths) & set(parents.values())):
        raise InputError(
            f"{name}: {both[0]!r} is a class and a group of classes at once; give its own images a class "
            f"such as {both[0]}{separator}other"
        )
    return Taxonomy(name, parents)


def from_yaml(path: str | Path) -> Taxonomy:
    """The tree of a YAML file with ``name`` (if not that of the file), ``root`` (if not "root") and ``tree``.

    Raises:
        InputError: for a file that is missing, not YAML, or without a ``tree``, a group that is named twice, tags
            (``!!int``), aliases (``*name``) and merge keys (``<<``), and as :func:`from_nested`.
    """
    path = Path(path)
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)
    except OSError as error:
        raise InputError(f"{path}: this taxonomy cannot be read ({error.strerror})") from None
    except RecursionError:
        raise InputError(f"{path}: {DEEP}") from None
    except yaml.constructor.ConstructorError as error:  # it is YAML, but no tree
        raise InputError(f"{path}, line {error.problem_mark.line + 1}: {error.problem}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: this taxonomy is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(content, dict) or not isinstance(content.get("tree"), dict | list):
        raise InputError(f"{path}: a taxonomy needs 'tree:' and below it its groups, each with its classes")
    if unknown := sorted(set(map(str, content)) - {"name", "root", "tree"}):
        raise InputError(f"{path}: {unknown[0]!r} means nothing here; known are name, root and tree")
    try:
        return from_nested(str(content.get("name") or path.stem), content["tree"], str(content.get("root") or ROOT))
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def from_dag(name: str, parents: Mapping[str, Sequence[str]], counts: Mapping[str, int]) -> Taxonomy:
    """The tree that a graph of classes with several parents becomes (*Climbing the Label Tree*, section 4.1).

    Each node keeps the parent nearest to the root (by the shortest way); of several the one with more training images
    below it; of several the first by name. A group that loses all its classes so is left out.

    Args:
        parents: every node but the root → its parents.
        counts: classes → their images in the training split; a class that is not named has none.

    Raises:
        InputError: for images of a group or of an unknown class, counts that are no whole numbers from 0 on, two roots,
            a circle, parents that are no list, counts that are no dictionary, and as :class:`Taxonomy`.

    >>> graph = {"metabolic": ["eye"], "vascular": ["eye"], "diabetes": ["metabolic", "vascular"]}
    >>> graph |= {"gout": ["metabolic"], "hypertension": ["vascular"]}
    >>> from_dag("odir", graph, {"diabetes": 9, "gout": 1, "hypertension": 3}).parents["diabetes"]
    'vascular'
    """
    checks.able("parents", parents, "items", "a dictionary, such as {'mel': ['melanocytic']}")
    checks.able("counts", counts, "items", "a dictionary, such as {'mel': 12}")
    for node, above in parents.items():
        refuse_text(name, f"the parents of {node!r}", above)
    parents = {node: list(above) for node, above in parents.items()}
    names = spellings(name, [node for kin, above in parents.items() for node in (kin, *above)])
    parents = {names[node]: [names[parent] for parent in above] for node, above in parents.items()}
    for node, count in counts.items():
        checks.whole(f"images of {node!r}", count, least=0)
    names = spellings(name, [node for node, _ in counts.items()])
    counts = {names[node]: count for node, count in counts.items()}
    below: dict[str, list[str]] = {}
    for node, above in parents.items():
        for parent in above:
            below.setdefault(parent, []).append(node)
    roots = sorted((set(below) | set(parents)) - {node for node, above in parents.items() if above})
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
        node: min(above, key=lambda parent: (depths[parent], -images[parent], parent))
        for node, above in parents.items()
        if above
    }
    while empty := (set(tree) & set(below)) - set(tree.values()):
        tree = {node: parent for node, parent in tree.items() if node not in empty}
    return Taxonomy(name, tree)


def _edges(name: str, nested: Any, way: tuple[str, ...]) -> Iterable[tuple[str, str]]:
    """The pairs (node, parent) of nested groups, as :func:`from_nested` takes them, below the ``way`` from the root."""
    if isinstance(nested, Mapping):
        for node, rest in nested.items():
            yield _node(name, node, way), way[-1]
            if isinstance(rest, Mapping | Sequence) and not rest:
                raise InputError(
                    f"{name}: the group {node!r} has no classes ({rest!r}); name them, or put nothing (null, None) "
                    "there if it is a class itself"
                )
            if rest is not None:
                yield from _edges(name, rest, (*way, node))
    elif isinstance(nested, Sequence) and not isinstance(nested, str | bytes):
        for item in nested:
            if isinstance(item, Mapping) and item:
                yield from _edges(name, item, way)
            else:
                yield _node(name, item, way), way[-1]
    else:
        raise InputError(f"{name}: below {way[-1]!r} stands {nested!r}; write its classes as a list, [{nested}]")


def _node(name: str, node: Any, way: tuple[str, ...]) -> str:
    """``node``, after a check that it is a name and does not stand below itself."""
    if not isinstance(node, str) or not node.strip():
        raise InputError(
            f"{name}: below {way[-1]!r} stands {node!r} where a name belongs; write a name as text, in quotes if need "
            "be, and take out what is empty"
        )
    if node in way[1:]:
        raise InputError(f"{name}: {node!r} stands below itself; a class stands at one place of a tree")
    return node


def _labels(name: str, labels: Iterable[str]) -> list[str]:
    """The different labels, sorted, after a check that every row has one (pandas gives NaN for a missing label)."""
    refuse_text(name, "the labels", labels)
    labels = list(labels)
    for row, label in enumerate(labels):
        if not isinstance(label, str):
            raise InputError(
                f"{name}: the label in row {row} is {label}, which is no text; fill it in if it is missing, and turn "
                "a number into text"
            )
    return sorted(set(map(spelled, labels)))


def _parts(name: str, path: str, separator: str) -> list[str]:
    """The parts of a class name that tells the way, after a check that none is empty or begins or ends with a blank."""
    parts = path.split(separator)
    bare = [part.strip() for part in parts]
    if not all(bare):
        raise InputError(f"{name}: {path!r} has an empty part; write it as group{separator}class")
    if parts != bare:
        raise InputError(f"{name}: {path!r} has a blank before or after a name; write {separator.join(bare)!r}")
    return parts


def _refuse_root(name: str, nodes: Container[str], root: str) -> None:
    """InputError where a class or a group is called as the root is."""
    if root in nodes:
        raise InputError(f"{name}: a class is called {root!r}, as the root is; give one of the two another name")


class _Loader(yaml.SafeLoader):
    """Reads every name as text (no, 1e5 and 2024 are classes too).

    Refuses a group that is named twice, tags, merge keys, and aliases: a few lines of these can be millions of names.
    """

    yaml_implicit_resolvers: ClassVar = {
        sign: [(tag, pattern) for tag, pattern in resolvers if tag.endswith((":null", ":merge"))]
        for sign, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event = self.peek_event()
        if isinstance(event, yaml.AliasEvent) or event.tag is not None:
            what = f"the alias *{event.anchor}" if isinstance(event, yaml.AliasEvent) else f"the tag {event.tag}"
            problem = f"{what} means nothing here; write out what it stands for"
            raise yaml.constructor.ConstructorError(None, None, problem, event.start_mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        names: set[str] = set()
        for key, _ in node.value:
            if key.tag.endswith(":merge"):
                problem = "the merge key << means nothing here; write out what it stands for"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
            one = str(self.construct_object(key, deep=True))
            if one in names:
                problem = f"{one!r} is named twice; name it once, with all that stands below it"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
            names.add(one)
        return super().construct_mapping(node, deep)
