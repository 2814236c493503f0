import math

import pytest
import torch

from lib.errors import InputError
from lib.geometry import Euclidean, PoincareBall, Sphere
from lib.losses import label_tree as losses
from lib.losses import level_margin
from lib.taxonomy import from_paths

TREE = from_paths("small", ["a/x/1", "a/x/2", "a/y/3", "b/z/4", "b/z/5"])
FLAT = from_paths("flat", ["1", "2", "3", "4", "5"])
PATHS = [leaf.split("/") for leaf in TREE.leaves]
GEOMETRIES = [Sphere(), PoincareBall(1.0), PoincareBall(0.3)]
TAU = 0.4


def points(geometry, z):
    return geometry.project(geometry.exp0(z))


def d(geometry, x, y):
    """Equation 1, or the distance of the ball by arcosh (Equation 2, with the factor that it lacks, LT-11)."""
    if isinstance(geometry, Sphere):
        return float((x / x.norm() - y / y.norm()).norm())
    c = geometry.c
    ratio = 2 * c * float((x - y) @ (x - y)) / ((1 - c * float(x @ x)) * (1 - c * float(y @ y)))
    return math.acosh(1 + ratio) / math.sqrt(c)


def rho(i, j):
    shared = 0
    for mine, theirs in zip(PATHS[i], PATHS[j], strict=True):
        if mine != theirs:
            break
        shared += 1
    return shared / 3


def by_loops(z, leaves, images, logit, weight):
    """Σ w·(−log softmax) / Σ w, pair by pair; logit and weight take two rows."""
    above, below = 0.0, 0.0
    for i in range(len(z)):
        total = sum(math.exp(logit(i, k)) for k in range(len(z)) if k != i)
        for j in range(len(z)):
            if j != i:
                above += weight(i, j) * -math.log(math.exp(logit(i, j)) / total)
                below += weight(i, j)
    return above / below


def omega(i, k, leaves, images, alpha, gamma):
    same = images[i] == images[k] or leaves[i] == leaves[k]
    return 1 + alpha if same else 1 + gamma * (1 - rho(leaves[i], leaves[k]))


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
@pytest.mark.parametrize("form", [losses.PRINTED, losses.SHIFTED, losses.DIVIDED])
def test_hwc_is_equation_7_pair_by_pair(batch, geometry, form):
    z, leaves, images = batch
    z = points(geometry, z)
    between = [d(geometry, z[i], z[k]) for i in range(12) for k in range(12) if leaves[i] != leaves[k]]
    zero = sum(between) / len(between) if form == losses.SHIFTED else 0.0

    def logit(i, k):
        s, w = (zero - d(geometry, z[i], z[k])) / TAU, omega(i, k, leaves, images, 0.6, 0.8)
        negative = leaves[i] != leaves[k]
        return s / w if negative and form == losses.DIVIDED else w * s

    found = losses.HierarchyWeighted(TREE, geometry, TAU, alpha=0.6, gamma=0.8, form=form)(z, leaves, images)
    wanted = by_loops(z, leaves, images, logit, lambda i, j: float(leaves[i] == leaves[j]))
    assert found.item() == pytest.approx(wanted, rel=1e-12)


def test_hwc_with_cosine_logits_is_equation_7_pair_by_pair(batch):
    z, leaves, images = batch

    def logit(i, k):
        cosine = float(z[i] @ z[k] / (z[i].norm() * z[k].norm()))
        return omega(i, k, leaves, images, 0.6, 0.8) * cosine / TAU

    loss = losses.HierarchyWeighted(TREE, Sphere(), TAU, alpha=0.6, gamma=0.8, form=losses.COSINE)
    wanted = by_loops(z, leaves, images, logit, lambda i, j: float(leaves[i] == leaves[j]))
    assert loss(z, leaves, images).item() == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
def test_the_flat_losses_pair_by_pair(batch, geometry):
    z, leaves, images = batch
    z = points(geometry, z)

    def logit(i, k):
        return -d(geometry, z[i], z[k]) / TAU

    def of_row(i, j):
        return float(leaves[i] == leaves[j]) / (int((leaves == leaves[i]).sum()) - 1)

    views = by_loops(z, leaves, images, logit, lambda i, j: float(images[i] == images[j]))
    classes = by_loops(z, leaves, images, logit, of_row)
    outside = by_loops(z, leaves, images, logit, lambda i, j: rho(leaves[i], leaves[j]))
    assert losses.SimCLR(TREE, geometry, TAU)(z, leaves, images).item() == pytest.approx(views, rel=1e-12)
    assert losses.SupCon(TREE, geometry, TAU)(z, leaves, images).item() == pytest.approx(classes, rel=1e-12)
    assert losses.OutsideSoftmax(TREE, geometry, TAU)(z, leaves, images).item() == pytest.approx(outside, rel=1e-12)


@pytest.mark.parametrize("form", losses.FORMS)
def test_without_multipliers_hwc_is_supcon_where_classes_are_equally_frequent(batch, form):
    z, leaves, images = (part[[0, 1, 2, 6, 7, 8]] for part in batch)
    without = losses.HierarchyWeighted(TREE, Sphere(), TAU, alpha=0, gamma=0, form=form)
    supcon = losses.SupCon(TREE, Sphere(), TAU, cosine=form == losses.COSINE)
    assert torch.allclose(without(z, leaves, images), supcon(z, leaves, images))


def test_with_unequal_classes_equation_7_is_not_supcon(batch):  # LT-10
    without = losses.HierarchyWeighted(TREE, Sphere(), TAU, alpha=0, gamma=0)
    assert not torch.allclose(without(*batch), losses.SupCon(TREE, Sphere(), TAU)(*batch))


def test_without_labels_supcon_and_hwc_are_simclr(batch):
    z, _, images = batch
    alone = from_paths("alone", [str(image) for image in range(6)])  # every image a class of its own
    simclr = losses.SimCLR(alone, Sphere(), TAU, cosine=True)(z, images, images)
    hwc = losses.HierarchyWeighted(alone, Sphere(), TAU, alpha=0, gamma=0, form=losses.COSINE)(z, images, images)
    assert torch.allclose(hwc, simclr)
    assert torch.allclose(losses.SupCon(alone, Sphere(), TAU, cosine=True)(z, images, images), simclr)


def test_a_flat_tree_leaves_the_outside_loss_with_nothing_but_the_classes(batch):
    z, leaves, images = batch
    without = losses.HierarchyWeighted(FLAT, Sphere(), TAU, alpha=0, gamma=0)
    assert torch.allclose(losses.OutsideSoftmax(FLAT, Sphere(), TAU)(z, leaves, images), without(z, leaves, images))


def test_a_flat_tree_gives_all_positives_one_multiplier_and_all_negatives_another(batch):
    """Nothing of a tree is left but 1 + α and 1 + γ; where they are equal, HWC as printed is a temperature."""
    _, leaves, _ = batch
    rho = torch.as_tensor(FLAT.rho())[leaves[:, None], leaves]
    own = leaves[:, None] == leaves
    omega = losses.multipliers(rho, own, alpha=0.2, gamma=0.7)
    assert set(omega[own].tolist()) == {1.2} and set(omega[~own].tolist()) == {1.7}
    flat = losses.HierarchyWeighted(FLAT, Sphere(), TAU, alpha=0.5, gamma=0.5, form=losses.PRINTED)
    warmer = losses.HierarchyWeighted(FLAT, Sphere(), TAU / 1.5, alpha=0, gamma=0, form=losses.PRINTED)
    assert torch.allclose(flat(*batch), warmer(*batch))


def test_a_constant_multiplier_is_a_temperature(batch):
    _, leaves, images = batch
    constant = losses.HierarchyWeighted(TREE, Sphere(), TAU, form=losses.PRINTED, constant=losses.ALL)
    pairs = [(i, k) for i in range(12) for k in range(12) if i != k]
    mean = sum(float(omega(i, k, leaves, images, 0.5, 0.5)) for i, k in pairs) / len(pairs)
    warmer = losses.HierarchyWeighted(TREE, Sphere(), TAU / mean, alpha=0, gamma=0, form=losses.PRINTED)
    assert torch.allclose(constant(*batch), warmer(*batch))


@pytest.mark.parametrize("form", [losses.SHIFTED, losses.COSINE, losses.DIVIDED])
def test_without_its_tree_hwc_has_a_multiplier_for_each_role(batch, form):
    """Positives keep 1 + α; negatives share the mean of theirs. On a flat tree nothing is lost by that."""
    _, leaves, images = batch
    alone = losses.HierarchyWeighted(TREE, Sphere(), TAU, alpha=0.2, gamma=0.9, form=form, constant=losses.BY_ROLE)
    own = (leaves[:, None] == leaves) | (images[:, None] == images)
    negatives = [(i, k) for i in range(12) for k in range(12) if not own[i, k]]
    b = sum(float(omega(i, k, leaves, images, 0.2, 0.9)) for i, k in negatives) / len(negatives)
    flat = losses.HierarchyWeighted(FLAT, Sphere(), TAU, alpha=0.2, gamma=b - 1, form=form)
    assert alone(*batch).item() == pytest.approx(flat(*batch).item(), rel=1e-6)
    assert alone(*batch).item() != pytest.approx(
        losses.HierarchyWeighted(TREE, Sphere(), TAU, alpha=0.2, gamma=0.9, form=form)(*batch).item(), rel=1e-4
    )
    options = {"alpha": 0.2, "gamma": 0.9, "form": form}
    on_flat = [losses.HierarchyWeighted(FLAT, Sphere(), TAU, constant=one, **options) for one in (None, losses.BY_ROLE)]
    assert torch.allclose(on_flat[0](*batch), on_flat[1](*batch))


def test_the_clamp_acts_below_gamma_only():  # LT-3
    rho, positive = torch.tensor([1.0, 0.5, 0.0]), torch.tensor([True, False, False])
    free = losses.multipliers(rho, positive, 0.2, 1.0)
    assert torch.equal(losses.multipliers(rho, positive, 0.2, 1.0, most=1.0), free)
    assert losses.multipliers(rho, positive, 0.2, 1.0, most=0.2).unique().tolist() == pytest.approx([1.2])


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
def test_the_printed_form_pushes_far_classes_less_than_siblings_and_the_others_more(geometry):  # LT-1
    # One anchor, one positive, a sibling and a far class, all three equally far from the anchor, less than the average.
    corners = torch.eye(3, dtype=torch.float64) if isinstance(geometry, Sphere) else 0.5 * torch.eye(3).double()
    anchor = torch.ones(3, dtype=torch.float64) / 3
    tree = from_paths("three", ["a/1", "a/2", "b/3"])
    leaves, images = torch.tensor([0, 0, 1, 2]), torch.tensor([0, 0, 1, 2])
    pushes = {}
    for form in (losses.PRINTED, losses.SHIFTED, losses.DIVIDED):
        z = torch.stack([anchor, *corners])
        loss = losses.HierarchyWeighted(tree, geometry, 0.2, form=form)
        s = loss.similarity(z).detach().requires_grad_()
        same, kin = images[:, None] == images, loss.rho.double()[leaves[:, None], leaves]
        losses.cross_entropy(loss.logits(s, kin, same)[:1].expand(4, 4), torch.eye(4)[1].expand(4, 4)).backward()
        pushes[form] = s.grad[0, 3] / s.grad[0, 2]  # far over sibling
    assert pushes[losses.PRINTED] < 0.8 < 1 < min(pushes[losses.SHIFTED], pushes[losses.DIVIDED]), pushes


def test_hxe_is_the_sum_over_the_path_and_without_decay_the_cross_entropy(batch):
    z, leaves, images = batch
    loss = losses.HierarchicalCrossEntropy(TREE, 3, Euclidean(), decay=0.4).double()
    p = (z @ loss.linear.weight.T + loss.linear.bias).softmax(-1)
    wanted = 0.0
    for row, leaf in zip(p.tolist(), leaves.tolist(), strict=True):
        mass = [sum(q for k, q in enumerate(row) if PATHS[k][:level] == PATHS[leaf][:level]) for level in range(4)]
        for level in (1, 2, 3):
            wanted -= math.exp(-0.4 * (level - 1)) * math.log(mass[level] / mass[level - 1]) / len(z)
    assert loss(z, leaves, images).item() == pytest.approx(wanted, rel=1e-12)
    plain = losses.HierarchicalCrossEntropy(TREE, 3, Euclidean(), decay=0.0).double()
    plain.load_state_dict(loss.state_dict())
    assert torch.allclose(plain(z, leaves), torch.nn.functional.nll_loss(p.log(), leaves))


UNEVEN = from_paths("uneven", ["a", "b/1", "b/2", "c/3", "c/4"])


def test_a_class_that_ends_early_counts_once_in_hxe():
    z = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8], [-1.0, 0.0], [-0.6, 0.8]], dtype=torch.float64)
    leaves = torch.arange(5)
    hxe = losses.HierarchicalCrossEntropy(UNEVEN, 2, Sphere(), decay=0.4).double()
    p = (z @ hxe.linear.weight.T + hxe.linear.bias).softmax(-1).tolist()
    pairs = {1: (1, 2), 2: (1, 2), 3: (3, 4), 4: (3, 4)}
    wanted = -math.log(p[0][0])  # a leaf of level 1 weighs as the groups beside it do
    for row, leaf in zip(p[1:], range(1, 5), strict=True):
        group = sum(row[other] for other in pairs[leaf])
        wanted -= math.log(group) + math.exp(-0.4) * math.log(row[leaf] / group)
    assert hxe(z, leaves).item() == pytest.approx(wanted / 5, rel=1e-12)


@pytest.mark.parametrize("frequent", [2, 16, 48])
def test_the_shifted_form_pushes_far_classes_more_also_where_positives_are_many(frequent):  # LT-1
    """Batches of a frequent class at one place, two siblings and two far images, all equally far from it."""
    tree = from_paths("three", ["a/1", "a/2", "b/3"])
    frame = torch.eye(5, dtype=torch.float64)
    z = torch.cat([frame[:1].expand(frequent, 5), frame[1:]])
    leaves = torch.tensor([0] * frequent + [1, 1, 2, 2])
    loss = losses.HierarchyWeighted(tree, Sphere(), 0.1)
    s = loss.similarity(z).detach().requires_grad_()
    same = torch.eye(len(z), dtype=torch.bool)
    kin = loss.rho.double()[leaves[:, None], leaves]
    losses.cross_entropy(loss.logits(s, kin, same), loss.weights(kin, same).double()).backward()
    assert s.grad[0, frequent + 2] > 1.1 * s.grad[0, frequent]


def losses_of(geometry, dim=3):
    yield losses.SimCLR(TREE, geometry, TAU)
    yield losses.SupCon(TREE, geometry, TAU)
    yield losses.OutsideSoftmax(TREE, geometry, TAU)
    yield losses.HierarchicalCrossEntropy(TREE, dim, geometry)
    for form in losses.FORMS:
        if form == losses.COSINE and not isinstance(geometry, Sphere):
            continue
        yield losses.Sum(
            losses.HierarchyWeighted(TREE, geometry, TAU, form=form),
            level_margin.LevelAwareMargin(TREE, dim, geometry),
            0.5,
        )


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
@pytest.mark.parametrize("where", ["zero", "duplicates", "rim"])
def test_gradients_are_finite(batch, geometry, where):
    z, leaves, images = batch
    start = {"zero": torch.zeros(12, 3), "duplicates": torch.ones(12, 3) / 5, "rim": 40 * z.float()}[where]
    for loss in losses_of(geometry):
        v = start.clone().float().requires_grad_()
        value = loss(points(geometry, v), leaves, images)
        value.backward()
        assert value.isfinite() and v.grad.isfinite().all(), (type(loss).__name__, where)


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
def test_float32_agrees_with_float64(batch, geometry):
    z, leaves, images = batch
    for loss in losses_of(geometry):
        exact = loss.double()(points(geometry, z), leaves, images)
        for name, value in loss.named_buffers():
            value.zero_() if name.endswith(("prototypes_1", "prototypes_2", "seen_1", "seen_2")) else None
        rounded = loss.float()(points(geometry, z.float()), leaves, images)
        assert rounded.item() == pytest.approx(exact.item(), rel=1e-4)


@pytest.mark.parametrize("kind", range(len(list(losses_of(Sphere())))))
def test_a_batch_that_does_not_fit_is_refused_by_every_loss(batch, kind):
    """−1 is pandas' number of a missing label, and a loss that took it would count it as the last class."""
    z, leaves, images = batch
    loss = list(losses_of(Sphere()))[kind].double()
    for wrong, message in (
        (-1, "leaves run from -1 to 4.*leave out what has no label"),
        (5, "from 0 to 5, but the tree has 5"),
    ):
        with pytest.raises(InputError, match=message):
            loss(z, torch.where(leaves == 2, wrong, leaves), images)
    with pytest.raises(InputError, match=r"leaves of shape \(1,\)"):
        loss(z, leaves[:1], images)
    with pytest.raises(InputError, match=r"images of shape \(1,\)"):
        loss(z, leaves, images[:1])
    with pytest.raises(InputError, match="there are no images"):
        loss(z[:0], leaves[:0], images[:0])
    for dtype in (torch.float64, torch.uint8, torch.int16):
        with pytest.raises(InputError, match=r"the leaves are torch.*labels\.long\(\)"):
            loss(z, leaves.to(dtype), images)


def test_what_cannot_be_is_refused(batch):
    with pytest.raises(InputError, match=r"gamma = 1e\+38 cannot be used: it must be a number from 0 to 1e\+06"):
        losses.HierarchyWeighted(TREE, gamma=1e38)
    with pytest.raises(InputError, match="would have two"):
        losses.HierarchyWeighted(TREE, constant=losses.ALL, form=losses.DIVIDED)
    with pytest.raises(InputError, match="constant = 'tree' is unknown: choose one of all, by role, or None"):
        losses.HierarchyWeighted(TREE, constant="tree")
    z, leaves, _ = batch
    with pytest.raises(InputError, match="no pair of the batch is a positive"):
        losses.SimCLR(TREE)(z, leaves, torch.arange(12))
    with pytest.raises(InputError, match="cosine needs unit vectors"):
        losses.HierarchyWeighted(TREE, PoincareBall(1.0), form=losses.COSINE)
    with pytest.raises(InputError, match="choose one of printed, cosine, shifted, divided"):
        losses.HierarchyWeighted(TREE, form="outside")
    with pytest.raises(InputError, match="teaches nothing"):
        losses.Sum(None)


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
@pytest.mark.parametrize(
    "kind", ["SimCLR", "SupCon", "OutsideSoftmax", "HierarchyWeighted", "HierarchicalCrossEntropy"]
)
def test_on_a_gpu_no_value_is_looked_at(batch, kind, geometry):
    """A step would wait for it, and could not be recorded. Tensors without values stand for those of a GPU."""
    z, leaves, images = (values.to("meta") for values in batch)
    loss = getattr(losses, kind)(TREE, *([z.shape[1]] if kind == "HierarchicalCrossEntropy" else []), geometry)
    z = z.requires_grad_()
    loss.to("meta", z.dtype)(z, leaves, images).backward()
    assert z.grad.shape == z.shape
