"""The loss of self-distillation equals its definition written as plain loops; centre and sharpening do their part."""

import math

import pytest
import torch
from scipy import special

from lib.errors import InputError
from lib.losses import dino


def logits(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float32)


def by_loops(student, teacher, centre, student_temperature, teacher_temperature):
    """Caron et al., algorithm 1, one image, one pair of crops and one prototype at a time."""
    terms = []
    for t in range(len(teacher)):
        for s in range(len(student)):
            if s == t:
                continue
            for i in range(student.shape[1]):
                asked = special.softmax(
                    [(x - c) / teacher_temperature for x, c in zip(teacher[t][i], centre, strict=True)]
                )
                answer = special.softmax([x / student_temperature for x in student[s][i]])
                terms.append(-sum(p * math.log(q) for p, q in zip(asked, answer, strict=True)))
    return sum(terms) / len(terms)


@pytest.mark.parametrize(("n_views", "n_seen"), [(4, 2), (2, 2), (3, 1)])
def test_equals_plain_loops(n_views, n_seen):
    student, teacher, centre = logits(0, n_views, 3, 5), logits(1, n_seen, 3, 5), logits(2, 5)
    loss = dino.cross_view(student, dino.targets(teacher, centre, 0.7), 0.9)
    expected = by_loops(student.double().numpy(), teacher.double().numpy(), centre.double().numpy(), 0.9, 0.7)
    assert loss.item() == pytest.approx(expected, rel=1e-5)


def test_extreme_logits_stay_finite():
    student, teacher = 1e4 * logits(0, 3, 2, 4), 1e4 * logits(1, 2, 2, 4)
    assert dino.cross_view(student, dino.targets(teacher, torch.zeros(4))).isfinite()


def test_half_precision_is_computed_in_float32():
    student, teacher = logits(0, 3, 2, 6).bfloat16(), logits(1, 2, 2, 6).bfloat16()
    wanted = dino.targets(teacher, torch.zeros(6))
    loss = dino.cross_view(student, wanted)
    assert wanted.dtype == loss.dtype == torch.float32
    assert loss.item() == pytest.approx(dino.cross_view(student.float(), wanted).item(), rel=1e-6)


def test_sharpening_and_centring_pull_in_opposite_directions():
    """A lower temperature lowers the entropy; taking off the mean raises that of the average answer."""
    teacher = logits(3, 64, 10) + 3 * torch.eye(10)[0]
    centre = dino.moved_centre(torch.zeros(10), teacher, momentum=0.0)
    plain, centred = (dino.targets(teacher, c, 0.5).mean(dim=0) for c in (torch.zeros(10), centre))
    assert plain.argmax() == 0 and plain[0] > 0.5
    assert dino.entropy(centred) > dino.entropy(plain) + 0.5
    sharp, soft = (dino.entropy(dino.targets(teacher, centre, t)).mean() for t in (0.1, 1.0))
    assert sharp < soft


def test_the_centre_by_hand():
    """0.9 · (1, 1) + 0.1 · mean of (0, 2), (2, 4), (4, 6), (6, 8) = 0.9 · (1, 1) + 0.1 · (3, 5)."""
    teacher = torch.tensor([[[0.0, 2.0], [2.0, 4.0]], [[4.0, 6.0], [6.0, 8.0]]])
    centre = dino.moved_centre(torch.ones(2), teacher, momentum=0.9)
    torch.testing.assert_close(centre, torch.tensor([1.2, 1.4]))


@pytest.mark.parametrize("temperature", [0.0, 1e-40, math.nan])
def test_a_temperature_that_overflows_is_refused(temperature):
    for call in (lambda x: dino.targets(x, torch.zeros(4), temperature), lambda x: dino.cross_view(x, x, temperature)):
        with pytest.raises(InputError, match=r"temperature = .* a finite number from 1e-06"):
            call(logits(0, 2, 3, 4))


@pytest.mark.parametrize(
    ("student", "wanted"), [((3, 2, 4), (2, 3, 4)), ((1, 2, 4), (1, 2, 4)), ((2, 2, 4), (3, 2, 4))]
)
def test_shapes_that_do_not_fit_are_refused(student, wanted):
    with pytest.raises(ValueError, match="do not fit"):
        dino.cross_view(torch.zeros(student), torch.zeros(wanted))
