"""Label trees: which classes are kin, how deep they part, and how far it is from one to another."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from lib import checks
from lib.checks import spelled
from lib.errors import InputError, suggestion


@dataclass(frozen=True, eq=False)
class Taxonomy:
    """A rooted tree of classes.

    name: what the tree is called. parents: every node but the root → its parent. A leaf is a class that images have; a
    leaf may end above the deepest level (an unbalanced tree). Names are kept, and looked up, as tables of images keep
    them (:func:`lib.checks.spelled`).

    Raises:
        InputError: for a cycle, two roots, fewer than two leaves, and two spellings of one name.

    >>> kin = Taxonomy("tumour", {"benign": "breast", "malignant": "breast", "ductal": "malignant"})
    >>> kin.root, kin.leaves, kin.depth
    ('breast', ('benign', 'ductal'), 2)
    """

    name: str
    parents: Mapping[str, str]

    def __post_init__(self) -> None:
        checks.able("parents", self.parents, "items", "a dictionary, such as {'mel': 'melanocytic'}")
        if not len(self.parents):
            raise InputError(f"{self.name} has no classes")
        names = spellings(self.name, [node for pair in self.parents.items() for node in pair])
        object.__setattr__(self, "parents", {names[node]: names[parent] for node, parent in self.parents.items()})
        roots = sorted(set(self.parents.values()) - set(self.parents))
        if len(roots) > 1:
            raise InputError(f"{self.name} has {len(roots)} roots ({few(roots)}); put them below one node")
        if not roots or len(self._depths) <= len(self.parents):
            lost = sorted(set(self.parents) - (set(self._depths) if roots else set()))
            raise InputError(f"{self.name}: {few(lost)} never reach a root: there is a circle of parents")
        if len(self.leaves) < 2:
            raise InputError(f"{self.name} has one leaf only, {self.leaves[0]}: there is nothing to tell apart")

    @cached_property
    def root(self) -> str:
        """The node without a parent."""
        return next(iter(set(self.parents.values()) - set(self.parents)))

    @cached_property
    def leaves(self) -> tuple[str, ...]:
        """The nodes without children, sorted; the codes of :meth:`codes` count them from 0."""
        return tuple(sorted(set(self.parents) - set(self.parents.values())))

    @cached_property
    def depth(self) -> int:
        """L, the depth of the deepest leaf; the root has depth 0."""
        return max(self._depths.values())

    @property
    def nodes(self) -> tuple[str, ...]:
        """All nodes, by depth and then by name: the root first."""
        return tuple(sorted(self._depths, key=lambda node: (self._depths[node], node)))

    @property
    def is_flat(self) -> bool:
        """Whether all leaves are children of the root, so that the tree says nothing."""
        return self.depth == 1

    def children(self, node: str) -> tuple[str, ...]:
        """The nodes right below ``node``, sorted; none for a leaf."""
        return self._children.get(self._known(node), ())

    def depth_of(self, node: str) -> int:
        """Edges from the root down to ``node``."""
        return self._depths[self._known(node)]

    def ancestors(self, node: str, root: bool = True) -> tuple[str, ...]:
        """The way from the root down to ``node``, both included; without ``root`` it begins at level 1.

        >>> kin = Taxonomy("tumour", {"benign": "breast", "malignant": "breast", "ductal": "malignant"})
        >>> kin.ancestors("ductal", root=False)
        ('malignant', 'ductal')
        """
        way = [self._known(node)]
        while way[-1] in self.parents:
            way.append(self.parents[way[-1]])
        return tuple(reversed(way if root else way[:-1]))

    def level(self, level: int) -> tuple[str, ...]:
        """The nodes of depth ``level``, sorted; a leaf that ends above it stands for itself there too.

        >>> kin = Taxonomy("skin", {"melanocytic": "lesion", "mel": "melanocytic", "nv": "melanocytic", "df": "lesion"})
        >>> kin.level(2)
        ('df', 'mel', 'nv')
        """
        checks.whole("level", level, least=0)
        if level > self.depth:
            raise InputError(f"{self.name} has the levels 0 to {self.depth}, not {level}")
        early = (leaf for leaf in self.leaves if self._depths[leaf] < level)
        return tuple(sorted([*early, *(node for node, depth in self._depths.items() if depth == level)]))

    def codes(self, labels: ArrayLike) -> np.ndarray:
        """(n,) the places of ``labels`` (n,) among the :attr:`leaves`; InputError for a missing label, or no leaf's."""
        labels = np.asarray(labels, dtype=object).reshape(-1)
        if (missing := pd.isna(labels)).any():
            raise InputError(f"{self.name}: row {missing.argmax()} has no label. Leave out images without a class")
        written, inverse = np.unique(labels.astype(str), return_inverse=True)
        names = [spelled(label) for label in written.tolist()]
        place = {leaf: code for code, leaf in enumerate(self.leaves)}
        if unknown := [label for label in names if label not in place]:
            inner = unknown[0] in self._depths
            why = "stands for a group of classes, not for one" if inner else "is not in it"
            raise InputError(
                f"{self.name}: the class {unknown[0]!r} {why} ({len(unknown)} such of {len(names)}); "
                f"{suggestion(unknown[0], self.leaves)}"
            )
        return np.array([place[label] for label in names], dtype=np.int64)[inverse.reshape(-1)]

    def leaf_depths(self) -> np.ndarray:
        """(n_leaves,) edges from the root down to each leaf."""
        return np.array([self._depths[leaf] for leaf in self.leaves])

    def ancestor_codes(self, level: int) -> np.ndarray:
        """(n_leaves,) the place in ``level(level)`` of each leaf's ancestor there, of an earlier leaf its own.

        >>> Taxonomy("tumour", {"benign": "breast", "malignant": "breast", "ductal": "malignant"}).ancestor_codes(1)
        array([0, 1])
        """
        place = {node: code for code, node in enumerate(self.level(level))}
        ways = (self.ancestors(leaf) for leaf in self.leaves)
        return np.array([place[way[min(level, len(way) - 1)]] for way in ways], dtype=np.int64)

    def shared_depth(self, a: ArrayLike, b: ArrayLike) -> np.ndarray:
        """Depth of the lowest common ancestor of the leaves ``a`` and ``b``, codes in any shapes that go together.

        Raises InputError for a code that is none of a leaf, as −1, which pandas has where a label is missing.

        >>> kin = Taxonomy("skin", {"melanocytic": "lesion", "mel": "melanocytic", "nv": "melanocytic", "df": "lesion"})
        >>> kin.shared_depth(kin.codes(["mel", "mel"]), kin.codes(["nv", "df"])).tolist()
        [1, 0]
        """
        a, b = np.asarray(a), np.asarray(b)
        for codes in (a, b):
            checks.codes("leaves", codes, len(self.leaves), f"{self.name} has {len(self.leaves)}")
        together = sum((codes[a] == codes[b] for codes in self._ancestor_codes), np.zeros((), dtype=np.int32))
        # From its own level down a leaf stands for itself: with itself it would be counted at all levels.
        return np.minimum(together, self.leaf_depths()[a]).astype(np.int32)

    def lca_depth(self) -> np.ndarray:
        """(n_leaves, n_leaves) depth of the lowest common ancestor; on the diagonal the leaf's own depth."""
        codes = np.arange(len(self.leaves))
        return self.shared_depth(codes[:, None], codes[None])

    def rho(self) -> np.ndarray:
        """(n_leaves, n_leaves) eq. 4 of *Climbing the Label Tree*: depth of the lowest common ancestor / L.

        A leaf with itself gets 1 also where it ends above level L, as the paper says in words; eq. 4 alone would give
        less than 1 there.

        >>> kin = Taxonomy("skin", {"melanocytic": "lesion", "mel": "melanocytic", "nv": "melanocytic", "df": "lesion"})
        >>> kin.rho()[1].tolist()  # of mel with df, mel, nv
        [0.0, 1.0, 0.5]
        """
        rho = self.lca_depth() / self.depth
        np.fill_diagonal(rho, 1.0)
        return rho

    def distance(self) -> np.ndarray:
        """(n_leaves, n_leaves) edges of the tree between two leaves."""
        depths = self.leaf_depths()
        return (depths[:, None] + depths[None] - 2 * self.lca_depth()).astype(np.int64)

    def cut(self, level: int) -> "Taxonomy":
        """The tree down to ``level``, 1 to L: its leaves are ``level(level)``."""
        checks.whole("level", level, least=0)
        if not 1 <= level <= self.depth:
            raise InputError(f"{self.name} can be cut at the levels 1 to {self.depth}, not at {level}")
        if level == self.depth:
            return self
        kept = {node: parent for node, parent in self.parents.items() if self._depths[node] <= level}
        return Taxonomy(f"{self.name}, {level} level{'s' * (level > 1)}", kept)

    def keep(self, leaves: Iterable[str]) -> "Taxonomy":
        """The tree of these leaves alone, such as the classes that a sample has, with the groups above them.

        Raises InputError for what is no list of leaves.

        >>> kin = Taxonomy("skin", {"melanocytic": "lesion", "mel": "melanocytic", "nv": "melanocytic", "df": "lesion"})
        >>> kin.keep(["mel", "df"]).leaves
        ('df', 'mel')
        """
        refuse_text(self.name, "the leaves", leaves)
        wanted = {self.leaves[code] for code in self.codes(list(leaves))}
        kept = {node for leaf in wanted for node in self.ancestors(leaf, root=False)}
        return Taxonomy(self.name, {node: parent for node, parent in self.parents.items() if node in kept})

    def __str__(self) -> str:
        inner = len(self.parents) - len(self.leaves)
        return f"{self.name}: {len(self.leaves)} leaves below {inner} groups, depth {self.depth}"

    @cached_property
    def _children(self) -> dict[str, tuple[str, ...]]:
        below: dict[str, list[str]] = {}
        for node, parent in self.parents.items():
            below.setdefault(parent, []).append(node)
        return {node: tuple(sorted(names)) for node, names in below.items()}

    @cached_property
    def _depths(self) -> dict[str, int]:
        """Every node that the root reaches → its depth."""
        return steps(self.root, self._children)

    @cached_property
    def _ancestor_codes(self) -> list[np.ndarray]:
        return [self.ancestor_codes(level) for level in range(1, self.depth + 1)]

    def _known(self, node: str) -> str:
        node = spelled(node) if isinstance(node, str) else node
        if node not in self._depths:
            raise InputError(f"{self.name} has no node {node!r}; {suggestion(node, self._depths)}")
        return node


def steps(start: str, below: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Every node that ``start`` reaches → the edges of the shortest way to it."""
    depths, waiting = {start: 0}, deque([start])
    while waiting:
        node = waiting.popleft()
        for child in below.get(node, ()):
            if child not in depths:
                depths[child] = depths[node] + 1
                waiting.append(child)
    return depths


def spellings(tree: str, names: Sequence[str]) -> dict[str, str]:
    """Each of ``names`` → how it is kept; InputError where one is no text, or two are one name of ``tree``."""
    if wrong := [name for name in names if not (isinstance(name, str) and name.strip())]:
        raise InputError(f"{tree}: a node is called {wrong[0]!r}; a name has to be text, and not empty")
    kept = {name: spelled(name) for name in names}
    written = {spelling: name for name, spelling in kept.items()}
    if twice := [name for name, spelling in kept.items() if written[spelling] != name]:
        other = written[kept[twice[0]]]
        raise InputError(f"{tree}: {twice[0]!a} and {other!a} are two spellings of one name; write it in one")
    return kept


def refuse_text(tree: str, what: str, names: Iterable[str]) -> None:
    """InputError for what is no list, and for a text in place of one, as it would be read letter by letter."""
    if not isinstance(names, Iterable):
        raise InputError(f"{tree}: {what} have to be a list, not {names!r}")
    if isinstance(names, str | bytes):
        raise InputError(f"{tree}: {what} have to be a list, not the text {names!r}; write [{names!r}]")


def few(names: Sequence[str]) -> str:
    """Up to three of ``names``, and how many more there are."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(map(str, names[:3])) + more
