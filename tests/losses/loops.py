"""Every loss written down from its formula, one row, pair or triplet at a time, in float64."""

import itertools
import math

import numpy as np
from sklearn.linear_model import Ridge

from lib.geometry import Euclidean, PoincareBall, Sphere
from lib.losses.acir import FLOOR
from lib.losses.codes import hash_centres
from lib.losses.hyper_dino import EPSILON
from lib.losses.label_tree import BY_ROLE, COSINE, DIVIDED, SHIFTED

TREE_PATHS = ["a/x/1", "a/x/2", "a/y/3", "b/z/4", "b/z/5"]


def mean(values) -> float:
    values = list(values)
    return sum(values) / len(values) if values else 0.0


def cosine(x, y) -> float:
    return x @ y / math.sqrt((x @ x) * (y @ y))


def distance(geometry, x, y) -> float:
    """From the textbook, not from lib."""
    if isinstance(geometry, Euclidean):
        return math.dist(x, y)
    if isinstance(geometry, Sphere):
        return math.acos(max(-1.0, min(1.0, cosine(x, y))))
    if not (c := geometry.c):
        return 2 * math.dist(x, y)
    ratio = 2 * c * math.dist(x, y) ** 2 / ((1 - c * x @ x) * (1 - c * y @ y))
    return math.acosh(1 + ratio) / math.sqrt(c)


def of_pairs(labels):
    """Ordered pairs of rows of one class, and of two classes."""
    both = list(itertools.permutations(range(len(labels)), 2))
    return [p for p in both if labels[p[0]] == labels[p[1]]], [p for p in both if labels[p[0]] != labels[p[1]]]


# Hyper-DINO, section 2.3


def contrastive(loss, h, labels):
    same, other = of_pairs(labels)
    d = {pair: distance(loss.geometry, h[pair[0]], h[pair[1]]) for pair in same + other}
    itself = [0.0] * len(h) * loss.self_pairs
    margin = loss.m0 + loss.alpha * mean([*d.values(), *itself])
    positive = sum(d[pair] for pair in same) / (len(same) + len(itself) + EPSILON)
    negative = sum(max(0.0, margin - d[pair]) for pair in other) / (len(other) + EPSILON)
    return positive + negative + loss.norm_weight * mean(map(np.linalg.norm, h))


# Hyp-ViT, Equation 5


def pairwise_cross_entropy(loss, h, labels):
    """For two subsets, all 2N images but i are below the line; subset s has the s-th image of each class."""
    rows = [[i for i, label in enumerate(labels) if label == c] for c in sorted(set(labels))]

    def closeness(i, k):
        d = 2 - 2 * cosine(h[i], h[k]) if loss.cosine else distance(loss.geometry, h[i], h[k])
        return math.exp(-d / loss.temperature)

    total = []
    for a, b in itertools.permutations(range(loss.samples), 2):
        both = [own[s] for own in rows for s in (a, b)]
        for own in rows:
            i, j = own[a], own[b]
            total.append(-math.log(closeness(i, j) / sum(closeness(i, k) for k in both if k != i)))
    return sum(total) / len(rows)


# Linear prototypes, Equations 2 to 4


def compared(name, query, support) -> float:
    """One query against one class, c = 1."""
    if name == "poincare":
        weights = [2 / (1 - x @ x) for x in support]
        total = sum(w * x for w, x in zip(weights, support, strict=True)) / sum(w - 1 for w in weights)
        prototype = total / (1 + math.sqrt(1 - total @ total))  # half of the gyrovector, ½ ⊗
        return distance(PoincareBall(1.0), query, prototype)
    if name == "cosine":
        return 1 - cosine(query, sum(x / math.sqrt(x @ x) for x in support))
    squared = ((query - sum(support) / len(support)) ** 2).sum()
    return squared if name == "squared euclidean" else math.sqrt(squared)


def episode(loss, h, labels):
    rows = [[i for i, label in enumerate(labels) if label == c][: loss.k] for c in range(loss.n_classes)]
    losses, support = [], set(itertools.chain(*rows))
    for i in set(range(len(h))) - support:
        scores = [
            math.exp(-compared(loss.comparison.name, h[i], [h[k] for k in own]) / loss.temperature) for own in rows
        ]
        losses.append(-math.log(scores[labels[i]] / sum(scores)))
    return mean(losses)


# Codes, each from its own paper


def csq(loss, h, labels):
    total = []
    for x, centre in zip(h, hash_centres(loss.n_classes, loss.bits).double().numpy()[labels], strict=True):
        for u, t in zip(x, centre, strict=True):
            p = (1 + u) / 2
            total.append(-math.log(p if t > 0 else 1 - p) + loss.weight * math.log(math.cosh(abs(u) - 1)))
    return mean(total)


def dpn(loss, h, labels):
    centres = hash_centres(loss.n_classes, loss.bits).double().numpy()[labels]
    return np.maximum(0, loss.margin - centres * h).mean()


def dch(loss, h, labels):
    def far(x, y):
        return len(x) / 2 * (1 - cosine(x, y))

    same, other = of_pairs(labels)
    alike = mean(-math.log(loss.gamma / (loss.gamma + far(h[i], h[j]))) for i, j in same)
    apart = mean(-math.log(1 - loss.gamma / (loss.gamma + far(h[i], h[j]))) for i, j in other)
    return alike + apart + loss.weight * mean(math.log(1 + far(abs(x), np.ones(len(x))) / loss.gamma) for x in h)


def logistic(h, labels):
    same, other = of_pairs(labels)
    return mean(math.log(1 + math.exp(h[i] @ h[j] / 2)) - ((i, j) in same) * h[i] @ h[j] / 2 for i, j in same + other)


def dbdh(loss, h, labels):
    b = np.where(h >= 0, 1.0, -1.0) if loss.discrete else h
    return logistic(b, labels) + loss.weight * mean(b.mean(1) ** 2)


def dsdh(loss, h, labels):
    y = np.eye(max(labels) + 1)[labels]
    w = Ridge(alpha=loss.ridge * len(h), fit_intercept=False).fit(h, y).coef_
    unexplained = ((y - h @ w.T) ** 2).sum() / len(h) + loss.ridge * (w**2).sum()
    to_signs = mean(((h - np.sign(h)) ** 2).sum(1))
    return logistic(h, labels) + loss.classify * unexplained + loss.weight * to_signs


def qsmih(loss, h, labels):
    same, other = of_pairs(labels)
    m, total = len(same + other) / len(same), []
    for i, j in same + other:
        s = (1 + cosine(h[i], h[j])) / 2
        total.append(((1 - s) ** 2 if (i, j) in same else 0) + s**2 / m)
    return mean(total) + loss.weight * abs(abs(h) - 1).mean()


def triplet(loss, h, labels):
    same, other = of_pairs(labels)
    apart = ((h[:, None] - h[None]) ** 2).mean(2)
    total = [max(0, loss.margin + apart[i, j] - apart[i, k]) for i, j in same for a, k in other if a == i]
    return mean(total) + loss.weight * abs(abs(h) - 1).mean()


# ACIR, Equations 12 to 17


def correlation(x, y) -> float:
    return float(np.corrcoef(x, y)[0, 1])


def quantisation(loss, x) -> float:
    if loss.quantisation != "ours":
        return math.log({"printed": 2, "code": 1.5}[loss.quantisation])
    return math.log(2 - cosine(abs(x), np.ones(len(x)))) + abs(abs(x) - 1).mean()


def structure_aware(loss, h, labels, prints=None):
    weights, terms = loss.class_weights or [1.0] * (max(labels) + 1), {True: [], False: []}
    for i, j in itertools.permutations(range(len(h)), 2):
        r, same = correlation(h[i], h[j]), labels[i] == labels[j]
        s = min(max(r if loss.clamped else (1 + r) / 2, FLOOR), 1 - FLOOR)
        look = 1.0
        if loss.looks:
            x, y = prints[i], prints[j]
            alike = cosine(x, y) if loss.likeness == "cosine" else (1 + correlation(x, y)) / 2
            look = math.exp(alike) if not same else alike if loss.neutral is None else float(alike >= loss.neutral)
        terms[same].append((weights[labels[i]] * weights[labels[j]], look, -math.log(s if same else 1 - s)))
    if loss.even:  # all pairs of a kind have the mean look of theirs
        terms = {
            kind: [(w, sum(a * b for a, b, _ in of) / sum(a for a, *_ in of), t) for w, _, t in of]
            for kind, of in terms.items()
        }
    contrast = mean(w * look * t for of in terms.values() for w, look, t in of)
    return contrast + loss.alpha * mean(quantisation(loss, x) for x in h)


# Climbing the Label Tree, Section 3


def rho(a, b) -> float:
    """Equation 4 for two leaves of TREE_PATHS."""
    paths = zip(TREE_PATHS[a].split("/"), TREE_PATHS[b].split("/"), strict=True)
    return sum(1 for _ in itertools.takewhile(lambda nodes: nodes[0] == nodes[1], paths)) / 3


def chord(geometry, x, y) -> float:
    """Equation 1, or the distance of the ball."""
    if isinstance(geometry, Sphere):
        return math.dist(x / np.linalg.norm(x), y / np.linalg.norm(y))
    return distance(geometry, x, y)


def softmax_over_pairs(n, logit, weight):
    """Σ w·(−log softmax) / Σ w; logit and weight take two rows."""
    above, below = 0.0, 0.0
    for i, j in itertools.permutations(range(n), 2):
        total = sum(math.exp(logit(i, k)) for k in range(n) if k != i)
        above -= weight(i, j) * math.log(math.exp(logit(i, j)) / total)
        below += weight(i, j)
    return above / below


def _plain(loss, h):
    return lambda i, k: -chord(loss.geometry, h[i], h[k]) / loss.temperature


def simclr(loss, h, labels, images):
    return softmax_over_pairs(len(h), _plain(loss, h), lambda i, j: float(images[i] == images[j]))


def supcon(loss, h, labels, images=None):
    own = {c: list(labels).count(c) - 1 for c in labels}
    return softmax_over_pairs(len(h), _plain(loss, h), lambda i, j: (labels[i] == labels[j]) / max(1, own[labels[i]]))


def outside(loss, h, labels, images=None):
    return softmax_over_pairs(len(h), _plain(loss, h), lambda i, j: rho(labels[i], labels[j]))


def hierarchy_weighted(loss, h, labels, images=None):
    same, other = of_pairs(labels)
    omega = {pair: 1 + loss.alpha for pair in same}
    omega |= {(i, j): 1 + loss.gamma * (1 - rho(labels[i], labels[j])) for i, j in other}
    if loss.constant:
        for part in [same, other] if loss.constant == BY_ROLE else [same + other]:
            omega |= dict.fromkeys(part, mean(omega[pair] for pair in part))
    zero = mean(chord(loss.geometry, h[i], h[j]) for i, j in other) if loss.form == SHIFTED else 0.0

    def logit(i, k):
        near = cosine(h[i], h[k]) if loss.form == COSINE else zero - chord(loss.geometry, h[i], h[k])
        divides = loss.form == DIVIDED and labels[i] != labels[k]
        return near / loss.temperature * (1 / omega[i, k] if divides else omega[i, k])

    return softmax_over_pairs(len(h), logit, lambda i, j: float(labels[i] == labels[j]))


def hierarchical_cross_entropy(loss, h, labels, images=None):
    """Of the probabilities that the layer of ``loss`` gives, points of the ball read at the origin."""
    total, weight, bias = 0.0, loss.linear.weight.detach().numpy(), loss.linear.bias.detach().numpy()
    for x, leaf in zip(loss.geometry.log0(h).numpy(), labels, strict=True):
        p = np.exp(weight @ x + bias)
        below = [sum(q for q, path in zip(p, TREE_PATHS, strict=True) if _starts(path, leaf, n)) for n in range(4)]
        total -= sum(math.exp(-loss.decay * (n - 1)) * math.log(below[n] / below[n - 1]) for n in (1, 2, 3))
    return total / len(h)


def _starts(path, leaf, level) -> bool:
    return path.split("/")[:level] == TREE_PATHS[leaf].split("/")[:level]


def level_margin(loss, h, labels, images=None):
    """Of the first batch: prototypes are its means (in the ball the gyromidpoint, which the geometry has)."""
    total, space = 0.0, loss.geometry
    for level, weight in zip((1, 2), loss.weights, strict=True):
        nodes = ["/".join(TREE_PATHS[leaf].split("/")[:level]) for leaf in labels]
        groups = {node: h[[n == node for n in nodes]] for node in nodes}
        if isinstance(space, PoincareBall):
            centres = {node: space.mean(group).numpy() for node, group in groups.items()}
        else:
            centres = {node: space.project(group).numpy().mean(0) for node, group in groups.items()}
        for x, own in zip(h, nodes, strict=True):
            apart = {node: chord(space, x, centre) for node, centre in centres.items()}
            nearest = min(d for node, d in apart.items() if node != own)
            total += weight * max(0.0, apart[own] - nearest + loss.margin / level) / len(h)
    return total


def both(loss, h, labels, images):
    return hierarchy_weighted(loss.pairs, h, labels) + loss.weight * level_margin(loss.margin, h, labels)
