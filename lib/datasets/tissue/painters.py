"""The eight tissues: each painter fills a canvas with haematoxylin and eosin density (2, h, w), about 2 at most.

Lengths are in µm, shares from 0 to 1. The five subtypes of a tissue share one painter and differ in its
parameters; each tile shakes them a little, so neighbouring subtypes overlap.
"""

import numpy as np

from lib.datasets.tissue.canvas import Canvas, patches, ramp
from lib.datasets.tissue.tree import SUBTYPES

Density = np.ndarray


def _nuclei(
    canvas: Canvas,
    place: np.ndarray,
    long: float,
    short: float,
    angle: np.ndarray | None = None,
    spread: float = 0.15,
    rim: float = 0.0,
    dark: float = 1.5,
) -> np.ndarray:
    """Haematoxylin of nuclei (half axes ``long`` and ``short``) with clumped chromatin; ``rim``: vesicular."""
    body = canvas.bodies(place, canvas.about(long, 0.06), canvas.about(short, 0.06), angle, spread, rim=rim)
    # Nuclei that overlap in the section darken each other, but the camera sees little more than one and a bit.
    return canvas.about(dark, 0.08) * np.minimum(body, 1.3) * (1 + 0.22 * canvas.noise(1.3))


def _fibrous(
    canvas: Canvas, eosin: float, width: float, length: float, wave: float, over: float, cleft: float
) -> tuple[np.ndarray, np.ndarray]:
    """Eosin of fibres with pale clefts along them (``cleft``: their share), and the local fibre angle."""
    field, angle = canvas.fibres(width, length, canvas.about(wave, 0.25), over)
    tone = 0.78 + 0.2 * field + 0.15 * canvas.noise(1.5)
    gap = patches(0.5 * canvas.noise(14) - 0.85 * field, canvas.about(cleft, 0.3), 0.4)
    return canvas.about(eosin) * (1 + 0.18 * canvas.noise(25)) * tone * (1 - 0.88 * gap), angle


def _spindles(canvas: Canvas, angle: np.ndarray, spacing: float, long: float, short: float) -> np.ndarray:
    """Haematoxylin of long nuclei that lie along ``angle``, about one in ``spacing`` squared."""
    place = canvas.grid(canvas.about(spacing), 0.5)
    turn = canvas.at(angle, place) + canvas.rng.normal(0, 0.12, len(place))
    return _nuclei(canvas, place, long, short, turn, 0.25)


def _mix(tissue: Density, other: Density, share: np.ndarray) -> Density:
    return tissue + share.astype(np.float32) * (other - tissue)


def stroma(
    canvas: Canvas,
    eosin: float = 0.75,
    width: float = 3.0,
    wave: float = 9.0,
    over: float = 28.0,
    cleft: float = 0.15,
    spacing: float = 19.0,
    plump: float = 1.9,
) -> Density:
    """Collagen bundles with clefts and thin fibroblasts."""
    e, angle = _fibrous(canvas, eosin, width, 45, wave, over, cleft)
    return np.stack([_spindles(canvas, angle, spacing, 5.8, plump) + 0.05 * e, e])


def muscle(
    canvas: Canvas,
    eosin: float = 0.9,
    wave: float = 4.0,
    over: float = 45.0,
    cleft: float = 0.04,
    spacing: float = 16.0,
    cross: bool = False,
) -> Density:
    """Smooth muscle: dense, nearly straight fibres with blunt nuclei; ``cross``: the fibres are cut across."""
    if cross:
        wall, owner, centre = canvas.cells(canvas.about(8.0), 0.32, 0.8)
        tone = 1 + 0.14 * canvas.rng.standard_normal(len(centre))
        e = canvas.about(eosin) * tone[owner] * (0.35 + 0.65 * ramp(wall, 0.1, 1.3)) * (1 + 0.1 * canvas.noise(1.5))
        h = _nuclei(canvas, canvas.keep(centre, 0.3), 2.4, 2.0, spread=0.25)
    else:
        e, angle = _fibrous(canvas, eosin, 2.4, 70, wave, over, cleft)
        h = _spindles(canvas, angle, spacing, 6.8, 1.65)
    return np.stack([h + 0.08 * e, e])


def lymphoid(
    canvas: Canvas,
    spacing: float = 7.6,
    radius: float = 3.0,
    keep: float = 0.93,
    rim: float = 0.15,
    plasma: float = 0.0,
    pale: float = 0.04,
    eosin: float = 0.17,
) -> Density:
    """Sheets of round nuclei; ``plasma``: how much cytoplasm they have, ``pale``: share of open areas."""
    place = canvas.grid(canvas.about(spacing, 0.07), 0.3)
    gone = canvas.at(patches(canvas.noise(22), canvas.about(pale, 0.3)), place)
    place = canvas.keep(place, keep * (1 - 0.85 * gone))
    e = canvas.about(eosin, 0.2) * (1 + 0.35 * canvas.noise(3) + 0.3 * canvas.noise(20)).clip(0.1)
    h = 0.1 + 0.05 * canvas.noise(4)
    if plasma:
        turn = canvas.rng.uniform(0, 2 * np.pi, len(place))
        beside = place + 2.2 * np.stack([np.cos(turn), np.sin(turn)], 1).astype(np.float32)
        cytoplasm = plasma * np.minimum(canvas.bodies(beside, 5.2, 4.0, shade=0.1), 1)
        e, h = e + 0.55 * cytoplasm, h + 0.22 * cytoplasm
    return np.stack([h + _nuclei(canvas, place, 1.06 * radius, radius, spread=0.12, rim=rim), e])


def adipose(
    canvas: Canvas,
    cell: float = 46.0,
    jitter: float = 0.22,
    wall: float = 1.1,
    septum: float = 0.0,
    inflamed: float = 0.0,
) -> Density:
    """Fat cells with thin walls and nuclei pressed to them; ``septum``: width of a fibrous band across."""
    distance, _, _ = canvas.cells(canvas.about(cell), jitter, 0.08 * cell)
    thick = canvas.about(wall, 0.2) * (1 + 0.35 * canvas.noise(12)).clip(0.3)
    shell = ramp(-distance, -thick - canvas.pitch / 2, -thick + canvas.pitch / 2)
    e = 0.55 * shell * np.minimum(1, 2 * thick / canvas.pitch) * (1 + 0.3 * canvas.noise(6)) + 0.015
    place = canvas.grid(9.0, 0.5)
    h = _nuclei(canvas, canvas.keep(place, 0.22 * (canvas.at(distance, place) < 2.6)), 3.2, 1.5, spread=0.25)
    if inflamed:
        crown = canvas.at(distance + 2.5 * canvas.noise(18), place) < 3.5
        h = h + _nuclei(canvas, canvas.keep(place, inflamed * crown), 2.8, 2.5)
        e = e + 0.25 * inflamed * ramp(-distance, -5, -1)
    fat = np.stack([h + 0.1 * e, e])
    if not septum:
        return fat
    across = canvas.across(canvas.rng.uniform(-0.2, 0.2)) + 8 * canvas.noise(35)
    return _mix(fat, stroma(canvas, wave=6.0), ramp(septum / 2 - np.abs(across), -1, 1))


def _propria(canvas: Canvas, cells: float) -> Density:
    """The loose tissue between glands, with a share ``cells`` of its places taken by lymphocytes."""
    tissue = stroma(canvas, eosin=0.42, width=2.0, wave=7.0, over=20.0, cleft=0.3, spacing=22.0, plump=1.7)
    tissue[0] += _nuclei(canvas, canvas.keep(canvas.grid(10.5, 0.42), canvas.about(cells)), 2.9, 2.6)
    return tissue


def glands(
    canvas: Canvas,
    spacing: float = 84.0,
    radius: float = 35.0,
    lumen: float = 0.22,
    goblet: float = 0.5,
    serrated: float = 0.0,
    cells: float = 0.5,
) -> Density:
    """Crypts cut across: one row of basal nuclei, a share ``goblet`` of mucous cells, a lumen in the middle."""
    rings = canvas.rings(canvas.about(spacing, 0.08), canvas.about(radius, 0.08), 0.1, 0.06)
    rho, theta, owner = canvas.polar(rings)
    pixel = canvas.pitch / radius
    tooth = np.cos(6 * theta + rings.phase[owner, 0] + 1.1 * canvas.noise(14))
    edge = lumen * (1 + serrated * tooth + 0.15 * canvas.noise(9))
    cell = ramp(rho, edge - pixel, edge + pixel)
    seam = np.cos(round(0.43 * radius) * theta) ** 8
    e = cell * (0.4 + 0.08 * canvas.noise(4) + 0.16 * seam) + (1 - cell) * 0.05 * (1 + canvas.noise(6)).clip(0)
    h = 0.16 * cell
    _, turn, place = rings.along(0.56 + 0.2 * lumen, 8.6)
    place = place + canvas.rng.normal(0, 1.2, place.shape).astype(np.float32)
    chosen = canvas.rng.random(len(place)) < canvas.about(goblet, 0.1)
    vacuole = canvas.bodies(place[chosen], 9.5 * (1 - lumen), 4.3, turn[chosen], shade=0.05)
    wall = ramp(vacuole, 0.05, 0.5) * ramp(-vacuole, -0.95, -0.5)
    mucin = np.minimum(vacuole, 1)
    e = e * (1 - 0.9 * mucin) + 0.25 * wall
    h = h * (1 - mucin) + mucin * (0.12 + 0.04 * canvas.noise(2)) + 0.1 * wall
    _, turn, place = rings.along(0.88, 5.2)
    place = place + canvas.rng.normal(0, 0.9, place.shape).astype(np.float32)
    h = h + _nuclei(canvas, place, 3.9, 2.3, turn, 0.15, rim=0.1)
    return _mix(np.stack([h, e]), _propria(canvas, cells), ramp(rho, 1 - pixel, 1 + pixel))


def tumour(
    canvas: Canvas,
    spacing: float = 78.0,
    radius: float = 36.0,
    lumen: float = 0.3,
    holes: float = 0.0,
    nucleus: float = 4.0,
    wavy: float = 0.13,
    mucin: bool = False,
) -> Density:
    """Malignant glands or nests: large, crowded, uneven nuclei; ragged lumens, or a share ``holes`` punched out."""
    rings = canvas.rings(canvas.about(spacing, 0.1), canvas.about(radius, 0.1), 0.2, wavy)
    rho, theta, owner = canvas.polar(rings)
    pixel = canvas.pitch / radius
    rho = rho + 0.09 * canvas.noise(9)
    hollow = lumen * np.exp(0.4 * canvas.rng.standard_normal(len(rings.radius)))[owner]
    cell = ramp(rho, hollow - pixel, hollow + pixel) if lumen else np.ones_like(rho)
    if holes:
        cell = cell * (1 - patches(canvas.noise(14), canvas.about(holes)))
    e = cell * canvas.about(0.5) * (1 + 0.2 * canvas.noise(4)) + (1 - cell) * 0.1 * (1 + canvas.noise(5)).clip(0)
    size = canvas.about(nucleus, 0.1)
    place = canvas.grid(1.95 * size, 0.33)
    place = canvas.keep(place, 0.9 * canvas.at(cell * (rho < 0.97), place))
    turn = canvas.at(theta, place) + canvas.rng.normal(0, 0.45, len(place))
    h = 0.27 * cell + _nuclei(canvas, place, 1.15 * size, 0.78 * size, turn, 0.24, rim=0.25, dark=1.4)
    h = h + 0.7 * canvas.bodies(canvas.keep(place, 0.35), 0.9, 0.8)
    if mucin:
        thread, _ = canvas.fibres(2.0, 40, 12, 30)
        between = np.stack([0.16 + 0.1 * ramp(thread, 0.5, 1.5), 0.07 + 0.12 * ramp(thread, 0.9, 1.8)])
    else:
        between = stroma(canvas, eosin=0.6, width=2.6, wave=9.0, over=26.0, cleft=0.15, spacing=15.0, plump=2.3)
    return _mix(np.stack([h, e]), between, ramp(rho, 1 - pixel, 1 + pixel))


def necrosis(
    canvas: Canvas,
    eosin: float = 0.65,
    ghosts: float = 0.3,
    dust: float = 0.2,
    cracks: float = 0.15,
    mucus: float = 0.0,
    chalk: float = 0.0,
) -> Density:
    """Dead tissue: grainy eosin, ghosts of cells, areas of nuclear dust, cracks; bluish mucus, dark calcium."""
    grain = 0.6 * canvas.noise(3) + 0.5 * canvas.noise(9) + 0.5 * canvas.noise(24)
    gap = patches(0.9 * canvas.noise(16) - 0.4 * grain, canvas.about(cracks, 0.3))
    e = canvas.about(eosin) * (0.8 + 0.3 * grain).clip(0.08) * (1 - 0.85 * gap)
    h = 0.06 + 0.1 * ramp(grain, 0, 2)
    if mucus:
        thread, _ = canvas.fibres(2.2, 26, 14, 22)
        e, h = e * (1 - 0.8 * mucus), h + mucus * (0.1 + 0.28 * ramp(thread, 0.4, 1.6))
    h = h + 0.45 * ghosts * canvas.bodies(canvas.keep(canvas.grid(11.0, 0.4), 0.7), 4.0, 3.2, spread=0.25, rim=0.5)
    place = canvas.grid(5.2, 0.5)
    dusty = canvas.at(patches(canvas.noise(18), canvas.about(dust), 0.5) * (1 - gap), place)
    h = h + 1.5 * np.minimum(canvas.bodies(canvas.keep(place, 0.75 * dusty), 1.35, 1.0, spread=0.45), 1.2)
    if chalk:
        stone = patches(0.95 * canvas.noise(9) + 0.3 * canvas.noise(3), canvas.about(chalk, 0.3))
        h = h + 1.5 * stone * (1 + 0.25 * canvas.noise(2))
    return np.stack([h, e])


def _red_cells(canvas: Canvas, filled: float) -> np.ndarray:
    """Eosin of red cells, packed in a share ``filled`` of the plane."""
    place = canvas.grid(6.3, 0.3)
    place = canvas.keep(place, canvas.at(patches(canvas.noise(16), filled), place))
    return canvas.about(1.3, 0.08) * np.minimum(canvas.bodies(place, 3.3, 2.8, shade=0.1, rim=0.18), 1.2)


def vessel(
    canvas: Canvas,
    spacing: float = 70.0,
    radius: float = 22.0,
    wall: float = 0.2,
    filled: float = 0.6,
    wavy: float = 0.08,
    bleeding: float = 0.0,
) -> Density:
    """Vessels cut across in loose tissue: wall (share of the radius), flat endothelium, red cells, bleeding."""
    rings = canvas.rings(canvas.about(spacing, 0.1), canvas.about(radius, 0.1), 0.2, wavy)
    rho, _, _ = canvas.polar(rings)
    pixel = canvas.pitch / radius
    inner = 1 - wall
    layer = np.sin(2 * np.pi * rho * radius / 3.4 + 2 * canvas.noise(10))
    e = 0.85 * (0.75 + 0.2 * layer + 0.12 * canvas.noise(2))
    h = 0.07 * e
    for level in np.arange(inner + 0.16, 0.97, 5.0 / radius):
        _, turn, place = rings.along(float(level), 13.0)
        place = place + canvas.rng.normal(0, 1.5, place.shape).astype(np.float32)
        h = h + _nuclei(canvas, place, 4.6, 1.5, turn + np.pi / 2, 0.2)
    blood = np.stack([np.full_like(e, 0.02), 0.03 + _red_cells(canvas, filled)])
    tissue = _mix(np.stack([h, e]), blood, ramp(inner - rho, -pixel, pixel))
    outside = stroma(canvas, eosin=0.5, width=2.6, wave=8.0, over=24.0, cleft=0.25, spacing=17.0, plump=1.8)
    tissue = _mix(tissue, outside, ramp(rho, 1 - pixel, 1 + pixel))
    _, turn, place = rings.along(inner, 14.0)
    tissue[0] += _nuclei(canvas, place, 4.2, 1.3, turn + np.pi / 2, 0.2)
    if bleeding:
        spilled = np.stack([0.5 * tissue[0], 0.4 * tissue[1] + 0.15 + _red_cells(canvas, 0.97)])
        tissue = _mix(tissue, spilled, patches(canvas.noise(20), canvas.about(bleeding), 0.4))
    return tissue


_PAINTERS = {p.__name__: p for p in (tumour, glands, muscle, stroma, adipose, necrosis, lymphoid, vessel)}


def paint(canvas: Canvas, tissue: str, subtype: str) -> Density:
    """Stain density (2, h, w) float32 of one ``subtype`` of a ``tissue`` on ``canvas``."""
    density = _PAINTERS[tissue](canvas, **SUBTYPES[tissue][subtype])
    return np.maximum(density, 0).astype(np.float32)  # noise may fall below zero, stain cannot
