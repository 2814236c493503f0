"""Every loss: its formula in plain loops, in each geometry; one call; any order of rows; finite wherever points lie."""

import inspect
import itertools
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
import torch
from torch import Tensor, nn

from lib.errors import InputError
from lib.geometry import Euclidean, Geometry, PoincareBall, Sphere
from lib.losses import label_tree
from lib.losses.acir import StructureAware
from lib.losses.hashing import CSQ, DBDH, DCH, DPN, DSDH, QSMIH, Triplet
from lib.losses.hyp_vit import PairwiseCrossEntropy, spherical
from lib.losses.hyper_dino import ContrastiveLoss
from lib.losses.label_tree import HierarchicalCrossEntropy, HierarchyWeighted, OutsideSoftmax, SimCLR, Sum, SupCon
from lib.losses.level_margin import LevelAwareMargin
from lib.losses.linear_prototypes import NAMES, Comparison, EpisodeLoss
from lib.taxonomy import from_paths
from tests.losses import loops

DIM, PIXELS, N_CLASSES, TAU = 8, 25, 4, 0.4
IMAGES = torch.arange(8).repeat(2)
UNEQUAL = torch.tensor([0, 0, 0, 1, 1, 2, 2, 3]).repeat(2)
EQUAL = torch.tensor([0, 1, 2] * 4 + [3] * 4)
EPISODE = torch.tensor([0, 1, 2, 3] * 2 + [3, 0, 0, 1, 2, 2, 1, 0])
TREE = from_paths("small", loops.TREE_PATHS)


@dataclass(frozen=True)
class Case:
    """A loss, made anew for every call as some keep something, its plain loops, and a batch that suits it.

    space: where rows are points; None for codes. ordered: the order of the rows of a class says something. stacks:
    leading dimensions and ``valid``. needs: keywords of a call.
    """

    make: Callable[[], Callable]
    loop: Callable
    space: Geometry | None = None
    labels: Tensor = field(default_factory=lambda: UNEQUAL)
    ordered: bool = False
    stacks: bool = True
    needs: tuple[str, ...] = ()
    slope: bool = True

    def loss(self, dtype: torch.dtype = torch.float64) -> Callable:
        loss = self.make()
        return loss.to(dtype) if isinstance(loss, nn.Module) else loss

    def points(self, v: Tensor) -> Tensor:
        return v.tanh() if self.space is None else self.space.project(self.space.exp0(v))

    def batch(self, seed: int = 0, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        generator = torch.Generator().manual_seed(seed)
        v = torch.randn(16, DIM, generator=generator, dtype=torch.float64) * (1.0 if self.space is None else 0.15)
        prints = torch.rand(16, PIXELS, generator=generator, dtype=torch.float64).to(dtype)
        more = {"prints": prints, "images": IMAGES}
        return self.points(v).to(dtype), self.labels, {name: more[name] for name in self.needs}


def of_tree(make, loop, space, **options) -> Case:
    return Case(make, loop, space, stacks=False, needs=("images",), **options)


FLAT, BALL = (Euclidean(), PoincareBall(0.0)), (PoincareBall(1.0), PoincareBall(0.3))
WEIGHTS = {"class_weights": (0.5, 1.0, 3.0, 2.0)}
CASES: dict[str, Case] = {}
for one in (*FLAT, Sphere(), *BALL):
    for self_pairs in (False, True):
        loss = ContrastiveLoss(one, self_pairs=self_pairs, detach_mean=self_pairs)
        case = Case(lambda loss=loss: loss, loops.contrastive, one, slope=not self_pairs)
        CASES[f"contrastive, {one}, {self_pairs}"] = case
for loss in (
    PairwiseCrossEntropy(samples=4),
    *(PairwiseCrossEntropy(one, 0.3, 4) for one in (Euclidean(), Sphere(), PoincareBall(1.0))),
    spherical(samples=4),
    PairwiseCrossEntropy(PoincareBall(0.1), 0.1, 4, cosine=True),
):
    name = f"pairwise cross-entropy, {loss.geometry}, {loss.temperature}, {loss.cosine}"
    case = Case(lambda loss=loss: loss, loops.pairwise_cross_entropy, loss.geometry, EQUAL, ordered=True)
    CASES[name] = case
for comparison in map(Comparison, NAMES):
    loss = EpisodeLoss(2, N_CLASSES, comparison, 0.5)
    case = Case(lambda loss=loss: loss, loops.episode, comparison.geometry, EPISODE, ordered=True)
    CASES[f"episode, {comparison.name}"] = case
for loss, loop in {
    CSQ(N_CLASSES, DIM, weight=0.3): loops.csq,
    DPN(N_CLASSES, DIM, margin=0.8): loops.dpn,
    DCH(gamma=5.0, weight=0.2): loops.dch,
    DBDH(weight=0.4): loops.dbdh,
    DBDH(weight=0.4, discrete=False): loops.dbdh,
    DSDH(classify=0.7, ridge=0.2, weight=0.05): loops.dsdh,
    QSMIH(weight=0.1): loops.qsmih,
    Triplet(margin=0.5, weight=0.2): loops.triplet,
    StructureAware(): loops.structure_aware,
    StructureAware(clamped=True, alpha=0.25, **WEIGHTS): loops.structure_aware,
    StructureAware(looks=True, **WEIGHTS): loops.structure_aware,
    StructureAware(looks=True, neutral=0.5): loops.structure_aware,
    StructureAware(looks=True, likeness="cosine", quantisation="code"): loops.structure_aware,
    StructureAware(looks=True, quantisation="printed"): loops.structure_aware,
    StructureAware(looks=True, even=True, **WEIGHTS): loops.structure_aware,
}.items():
    needs = ("prints",) if getattr(loss, "looks", False) else ()
    CASES[str(loss)] = Case(lambda loss=loss: loss, loop, needs=needs, slope=loss != DBDH(weight=0.4))
for one in (Sphere(), *BALL):
    for kind, loop in {SimCLR: loops.simclr, SupCon: loops.supcon, OutsideSoftmax: loops.outside}.items():
        CASES[f"{kind.__name__}, {one}"] = of_tree(lambda kind=kind, one=one: kind(TREE, one, TAU), loop, one)
    for form, constant in itertools.product(label_tree.FORMS, (None, *label_tree.CONSTANTS)):
        if (form == label_tree.COSINE and one != Sphere()) or (form, constant) == ("divided", "all"):
            continue
        settings = {"alpha": 0.6, "gamma": 0.8, "form": form, "constant": constant}
        CASES[f"HWC, {one}, {form}, {constant}"] = of_tree(
            lambda one=one, settings=settings: HierarchyWeighted(TREE, one, TAU, **settings),
            loops.hierarchy_weighted,
            one,
            slope=form != label_tree.SHIFTED,  # the mean distance passes no gradient
        )

    def hxe(one=one):
        return HierarchicalCrossEntropy(TREE, DIM, one, decay=0.4, generator=torch.Generator().manual_seed(1))

    def lam(one=one, weights=None):
        return LevelAwareMargin(TREE, DIM, one, margin=0.9, weights=weights)

    CASES[f"HXE, {one}"] = of_tree(hxe, loops.hierarchical_cross_entropy, one)
    CASES[f"LAM, {one}"] = of_tree(lambda lam=lam: lam(weights=(1.5, 0.25)), loops.level_margin, one, slope=False)
    CASES[f"sum, {one}"] = of_tree(
        lambda one=one, lam=lam: Sum(HierarchyWeighted(TREE, one, TAU), lam(), 0.5), loops.both, one, slope=False
    )

every = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def rearranged(case: Case, seed: int = 1) -> Tensor:
    """A random order of the rows; where their order in a class matters, that stays."""
    order = torch.randperm(16, generator=torch.Generator().manual_seed(seed))
    if case.ordered:
        of_class = case.labels[order]
        order = torch.empty_like(order)
        for c in case.labels.unique():
            order[of_class == c] = (case.labels == c).nonzero()[:, 0]
    return order


@every
@pytest.mark.parametrize("seed", range(2))
def test_a_loss_is_its_formula_pair_by_pair(case, seed):
    h, labels, more = case.batch(seed)
    loss = case.loss()
    given = {name: values.numpy() for name, values in more.items()}
    expected = case.loop(loss, h.numpy(), labels.tolist(), **given)
    assert loss(h, labels, **more).item() == pytest.approx(expected, rel=1e-10)
    rounded, _, more = case.batch(seed, torch.float32)
    value = case.loss(torch.float32)(rounded, labels, **more)
    assert value.dtype == torch.float32 and value.item() == pytest.approx(expected, rel=1e-5)


@every
def test_the_order_of_the_rows_does_not_matter(case):
    h, labels, more = case.batch()
    order = rearranged(case)
    results = []
    for rows in (torch.arange(16), order):
        x = h[rows].requires_grad_()
        value = case.loss()(x, labels[rows], **{name: values[rows] for name, values in more.items()})
        results.append((value, torch.autograd.grad(value, x)[0]))
    assert results[1][0].item() == pytest.approx(results[0][0].item(), rel=1e-10)
    torch.testing.assert_close(results[1][1], results[0][1][order], rtol=1e-8, atol=1e-10)


@every
def test_the_gradient_is_the_slope(case):
    if not case.slope:
        pytest.skip("a part of it passes no gradient, or the straight-through one")
    h, labels, more = case.batch()
    way = torch.randn(h.shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    h.requires_grad_()
    slope = (torch.autograd.grad(case.loss()(h, labels, **more), h)[0] * way).sum().item()
    with torch.no_grad():
        steps = [case.loss()(h + sign * 1e-6 * way, labels, **more).item() for sign in (1, -1)]
    assert slope == pytest.approx((steps[0] - steps[1]) / 2e-6, rel=1e-5, abs=1e-9)


@every
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("where", ["zero", "some zero", "duplicates", "opposites", "rim", "tiny", "all alike"])
def test_value_and_gradient_are_finite(case, where, dtype):
    v = torch.randn(16, DIM, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(dtype)
    if where == "some zero":
        v[2:7] = 0
    elif where == "duplicates":
        v[1:9] = v[0]
    elif where == "opposites":
        v[8:] = -v[:8]
    else:
        v = {"zero": 0, "rim": 1e3, "tiny": 1e-20}.get(where, 0) * v + (where == "all alike") * 0.2
    h = case.points(v).detach().requires_grad_()
    _, labels, more = case.batch(dtype=dtype)
    value = case.loss(dtype)(h, labels, **more)
    value.backward()
    assert value.dtype == dtype == h.grad.dtype
    assert value.isfinite() and h.grad.isfinite().all()


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.stacks and not case.ordered])
@pytest.mark.parametrize("labels", [[1] * 4, [0, 1, 2, 3], [2]], ids=["one class", "each its own", "one image"])
def test_a_batch_without_pairs_of_a_kind_is_finite(name, labels):
    h, _, more = CASES[name].batch(dtype=torch.float32)
    h, more = h[: len(labels)].requires_grad_(), {key: part[: len(labels)] for key, part in more.items()}
    value = CASES[name].loss()(h, torch.tensor(labels), **more)
    value.backward()
    assert value.isfinite() and h.grad.isfinite().all()


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.stacks])
def test_a_stack_is_its_batches_and_rows_that_only_fill_up_count_nothing(name):
    """Batches of 16, of 12 with other rows between them, and of one row, as of a head that is through."""
    case, order = CASES[name], rearranged(CASES[name])
    (h, labels, more), (other, _, more_of_other) = case.batch(0), case.batch(1)
    valid = torch.stack([torch.ones(16, dtype=torch.bool), (torch.arange(16) < 12)[order], torch.arange(16) < 1])
    rows = torch.where(valid[1][:, None], other[order], 0.7 * other[:1])
    stack = torch.stack([h, rows, h[:1].expand(16, -1)]).requires_grad_()
    classes = torch.stack([labels, labels[order].where(valid[1], labels[0]), labels[:1].expand(16)])
    prints = {name: torch.stack([more[name], more_of_other[name][order], more[name]]) for name in more}
    values = case.loss()(stack, classes, valid=valid, **prints)
    (gradient,) = torch.autograd.grad(values.sum(), stack)
    assert values.shape == (3,) and values.isfinite().all() and gradient.isfinite().all()
    for i in (0, 1):
        x = stack[i, valid[i]].detach().requires_grad_()
        value = case.loss()(x, classes[i, valid[i]], **{name: part[i, valid[i]] for name, part in prints.items()})
        assert values[i].item() == pytest.approx(value.item(), rel=1e-10)
        torch.testing.assert_close(gradient[i, valid[i]], torch.autograd.grad(value, x)[0], rtol=1e-8, atol=1e-10)
        assert (gradient[i, ~valid[i]] == 0).all()


@every
def test_all_take_embeddings_and_labels_and_the_rest_by_name(case):
    call = case.loss().forward if isinstance(case.loss(), nn.Module) else case.loss().__call__
    kinds = [parameter.kind for parameter in inspect.signature(call).parameters.values()]
    assert [kind.name for kind in kinds[:2]] == ["POSITIONAL_OR_KEYWORD"] * 2
    assert {kind.name for kind in kinds[2:]} == {"KEYWORD_ONLY"}
    loss = case.loss()
    again = pickle.loads(pickle.dumps(loss))  # it goes to other processes
    h, labels, more = case.batch()
    assert torch.equal(again(h, labels, **more), loss(h, labels, **more))
    assert isinstance(loss, nn.Module) or {loss: 1}[again] == 1


@every
def test_labels_that_do_not_fit_are_refused_with_the_way_out(case):
    h, labels, more = case.batch()
    with pytest.raises(InputError, match=r"labels have the shape \(3,\), the embeddings need \(16,\)"):
        case.loss()(h, labels[:3], **more)
    with pytest.raises(InputError, match=r"labels run from -1 to 3.*leave out what has no label"):
        case.loss()(h, labels.where(labels != 2, -1), **more)
    with pytest.raises(InputError, match="there are no images"):
        case.loss()(h[:0], labels[:0], **{name: part[:0] for name, part in more.items()})
    for dtype in (torch.float64, torch.uint8, torch.int16, torch.bool):
        with pytest.raises(InputError, match=rf"the labels are {dtype}.*labels\.long\(\)"):
            case.loss()(h, labels.to(dtype), **more)
    assert case.loss()(h, labels.int(), **more) == case.loss()(h, labels, **more)


@every
def test_on_a_gpu_no_value_is_looked_at(case):
    """A step would wait for it, and could not be recorded. Tensors without values stand for those of a GPU."""
    (h, labels, more), loss = case.batch(), case.loss()
    if not getattr(loss, "recordable", True) or isinstance(loss, DSDH | LevelAwareMargin | Sum):
        pytest.skip("it looks at values, and is not recorded")
    h = h.to("meta").requires_grad_()
    loss = loss.to("meta") if isinstance(loss, nn.Module) else loss
    loss(h, labels.to("meta"), **{name: part.to("meta") for name, part in more.items()}).backward()
    assert h.grad.shape == h.shape
