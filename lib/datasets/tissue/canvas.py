"""What tissue is drawn with: noise from a bank, round and long bodies, fibres, cells and rings, all in µm."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.spatial import cKDTree
from scipy.special import ndtri

BANK_SIDE = 512  # px
LARGEST = 256  # px; a tile of this size can still start at 256 x 256 places of the bank
_LENGTHS = 2.0 ** np.arange(-0.5, 6.1, 0.5)  # correlation lengths of the bank in px, 0.7 to 64
_STREAK = 4.0  # correlation length in px of the field that fibres are read from


@lru_cache(maxsize=1)
def _bank() -> dict[float, np.ndarray]:
    """Periodic Gaussian noise fields of zero mean and unit variance, one for each correlation length."""
    white = np.fft.rfft2(np.random.default_rng(2016).standard_normal((BANK_SIDE, BANK_SIDE)))
    fy, fx = np.fft.fftfreq(BANK_SIDE)[:, None], np.fft.rfftfreq(BANK_SIDE)[None, :]
    fields = {}
    for length in _LENGTHS:
        field = np.fft.irfft2(white * np.exp(-((np.pi * length) ** 2) * (fx**2 + fy**2)), s=(BANK_SIDE,) * 2)
        fields[float(length)] = ((field - field.mean()) / field.std()).astype(np.float32)
    return fields


def ramp(value: np.ndarray, low: float, high: float) -> np.ndarray:
    """0 below ``low``, 1 above ``high``, a straight line between them."""
    return np.clip((value - low) / (high - low), 0, 1)


def patches(field: np.ndarray, share: float, soft: float = 0.2) -> np.ndarray:
    """1 where a ``field`` of unit variance is among its top ``share``, 0 elsewhere, with soft edges."""
    level = ndtri(np.clip(1 - share, 1e-4, 1 - 1e-4))  # at 0 and 1 the level would be infinite
    return ramp(field, level - soft, level + soft).astype(np.float32)


@dataclass(frozen=True)
class Rings:
    """Closed, slightly wavy outlines (glands, vessels): centres in µm, mean radii in µm, harmonics 2, 3 and 5."""

    centre: np.ndarray
    radius: np.ndarray
    amplitude: np.ndarray
    phase: np.ndarray

    def outline(self, ring: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """The radius in µm of the outline of each ``ring`` (indices) at its angle ``theta``."""
        a, p = self.amplitude[ring], self.phase[ring]
        wave = sum(a[..., i] * np.cos(k * theta + p[..., i]) for i, k in enumerate((2, 3, 5)))
        return self.radius[ring] * (1 + wave)

    def along(self, rho: float, spacing: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Evenly spaced places at ``rho`` times the outline: ring index, angle and position (n, 2) in µm."""
        count = np.maximum(2, (2 * np.pi * rho * self.radius / spacing).astype(int))
        ring = np.repeat(np.arange(len(count)), count)
        step = np.arange(len(ring)) - np.repeat(np.cumsum(count) - count, count)
        theta = (2 * np.pi * step / count[ring]).astype(np.float32)
        reach = rho * self.outline(ring, theta)
        return ring, theta, self.centre[ring] + reach[:, None] * np.stack([np.cos(theta), np.sin(theta)], 1)


class Canvas:
    """One tile to draw on: ``size`` px of ``pitch`` µm each, and the random numbers that belong to it."""

    def __init__(self, size: int, pitch: float, rng: np.random.Generator):
        self.size, self.pitch, self.rng = size, pitch, rng
        self.extent = size * pitch
        axis = (np.arange(size, dtype=np.float32) + 0.5) * np.float32(pitch)
        self.x, self.y = np.broadcast_to(axis, (size, size)), np.broadcast_to(axis[:, None], (size, size))

    def about(self, value: float, spread: float = 0.12) -> float:
        """``value`` with the variation of one tile to the next, a factor with log-deviation ``spread``."""
        return value * float(np.exp(spread * self.rng.standard_normal()))

    def across(self, offset: float = 0.0) -> np.ndarray:
        """Distance in µm, with sign, to a line in a random direction, ``offset`` tile widths from the middle."""
        angle = self.rng.uniform(0, 2 * np.pi)
        x, y = self.x - self.extent / 2, self.y - self.extent / 2
        return x * np.float32(np.cos(angle)) + y * np.float32(np.sin(angle)) - np.float32(offset * self.extent)

    def noise(self, length: float) -> np.ndarray:
        """A random field of unit variance, correlated over ``length`` µm; what is finer than a pixel fades."""
        wanted = length / self.pitch
        field = _bank()[float(_LENGTHS[np.abs(np.log(_LENGTHS / wanted)).argmin()])]
        top, left, turn = self.rng.integers(0, (BANK_SIDE - self.size + 1, BANK_SIDE - self.size + 1, 8))
        crop = np.rot90(field[top : top + self.size, left : left + self.size], turn % 4)
        return (crop.T if turn > 3 else crop) * np.float32(min(1.0, wanted / 0.7))

    def fibres(self, width: float, length: float, wave: float, over: float) -> tuple[np.ndarray, np.ndarray]:
        """Fibres ``width`` x ``length`` µm that swing by ``wave`` µm over ``over`` µm: field and local angle."""
        angle = self.rng.uniform(0, np.pi)
        cos, sin = np.float32(np.cos(angle)), np.float32(np.sin(angle))
        swing = np.float32(wave) * self.noise(over)
        u, v = self.x * cos + self.y * sin, self.y * cos - self.x * sin + swing
        start_u, start_v = self.rng.integers(0, BANK_SIDE, 2)
        rows = (v * np.float32(_STREAK / width)).astype(np.int32) + start_v
        columns = (u * np.float32(_STREAK / length)).astype(np.int32) + start_u
        field = _bank()[_STREAK][rows % BANK_SIDE, columns % BANK_SIDE]
        down, right = np.gradient(v, np.float32(self.pitch))
        return field * np.float32(min(1.0, width / self.pitch)), np.arctan2(-right, down)

    def grid(self, spacing: float, jitter: float = 0.3, margin: float = 10.0) -> np.ndarray:
        """Places (n, 2) in µm, ``spacing`` apart on a shaken triangular lattice that covers the tile and more."""
        rows = int((self.extent + 2 * margin) / (spacing * 0.866)) + 3
        columns = int((self.extent + 2 * margin) / spacing) + 3
        start = self.rng.uniform(-1, 0, 2) * spacing - margin
        j, i = np.mgrid[:rows, :columns]
        lattice = np.stack([i + 0.5 * (j % 2), 0.866 * j], -1).reshape(-1, 2) * spacing + start
        return (lattice + jitter * spacing * self.rng.uniform(-1, 1, lattice.shape)).astype(np.float32)

    def at(self, field: np.ndarray, place: np.ndarray) -> np.ndarray:
        """The value of ``field`` at each ``place`` in µm; outside the tile, that of the nearest pixel."""
        column, row = np.clip((place / self.pitch).astype(int), 0, self.size - 1).T
        return field[row, column]

    def keep(self, place: np.ndarray, chance: float | np.ndarray) -> np.ndarray:
        """The places that survive a draw with probability ``chance``: one number or one for each place."""
        return place[self.rng.random(len(place)) < chance]

    def bodies(
        self,
        place: np.ndarray,
        long: float,
        short: float,
        angle: np.ndarray | None = None,
        spread: float = 0.15,
        shade: float = 0.2,
        rim: float = 0.0,
    ) -> np.ndarray:
        """Density of egg-shaped bodies (nuclei, red cells, vacuoles) at ``place``, about 1 inside each.

        ``long`` and ``short`` are half axes in µm, ``angle`` the direction of the long one (None: random),
        ``spread`` the log-deviation of size, ``shade`` that of density; ``rim`` > 0 pales the middle.
        """
        n, rng = len(place), self.rng
        grow = np.exp(spread * rng.standard_normal((2, n))).astype(np.float32) / np.float32(self.pitch)
        a, b = long * grow[0], short * np.sqrt(grow[0] * grow[1])
        depth = np.exp(shade * rng.standard_normal(n)).astype(np.float32)
        turn = rng.uniform(0, np.pi, n) if angle is None else angle
        cos, sin = np.cos(turn).astype(np.float32), np.sin(turn).astype(np.float32)
        # A body thinner than a pixel is drawn a pixel wide and paler. The edge, a ramp one pixel wide, enlarges the
        # area by 1 / (12 thin²). Both are made up for, so that the total stain is the same at each magnification.
        full_a, full_b = np.maximum(a, 0.6), np.maximum(b, 0.6)
        thin = np.minimum(full_a, full_b)
        depth = depth * (a * b) / (full_a * full_b) / (1 + 1 / (12 * thin**2))
        skew = rng.uniform(-0.25, 0.25, (2, n)).astype(np.float32) / np.maximum(full_a, full_b)
        x, y = (place / self.pitch - 0.5).astype(np.float32).T
        reach = np.ceil(1.25 * np.maximum(full_a, full_b) + 1).astype(int)
        inside = (x > -reach) & (x < self.size + reach) & (y > -reach) & (y < self.size + reach)
        border = 2 * int(reach.max(initial=0)) + 1
        side = self.size + 2 * border
        total = np.zeros(side * side)
        for r in np.unique(reach[inside]):  # one batch for each patch size: patches (bodies, 2r + 1, 2r + 1)
            s = np.flatnonzero(inside & (reach == r))[:, None, None]
            column, row = np.rint(x[s]).astype(int), np.rint(y[s]).astype(int)
            columns, rows = column + np.arange(-r, r + 1)[None, None, :], row + np.arange(-r, r + 1)[None, :, None]
            dx, dy = columns - x[s], rows - y[s]
            p = dx * (cos / full_a)[s] + dy * (sin / full_a)[s]
            q = dy * (cos / full_b)[s] - dx * (sin / full_b)[s]
            egg = (1 + dx * skew[0][s]) + dy * skew[1][s]
            np.maximum(egg, 0.4, out=egg)  # far outside the body it would turn negative; inside it is above 0.6
            rho = np.sqrt((p * p + q * q) * egg)
            cover = np.clip((1 - rho) * thin[s] + 0.5, 0, 1)
            if rim:
                cover *= 1 - rim + 2 * rim * np.minimum(rho, 1) ** 2
            where = (rows + border) * side + (columns + border)
            total += np.bincount(where.ravel(), (cover * depth[s]).ravel(), side * side)
        return total.reshape(side, side)[border:-border, border:-border].astype(np.float32)

    def cells(self, spacing: float, jitter: float, bend: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Voronoi cells with walls bent by ``bend`` µm: distance to the wall in µm, owner, centres in µm."""
        centre = self.grid(spacing, jitter, margin=spacing)
        bent = [axis + np.float32(bend) * self.noise(spacing / 2) for axis in (self.x, self.y)]
        distance, near = cKDTree(centre).query(np.stack(bent, -1), k=2)
        apart = np.linalg.norm(centre[near[..., 0]] - centre[near[..., 1]], axis=-1)
        wall = (distance[..., 1] ** 2 - distance[..., 0] ** 2) / (2 * apart)
        return wall.astype(np.float32), near[..., 0], centre

    def rings(self, spacing: float, radius: float, spread: float, wavy: float) -> Rings:
        """Rings of mean ``radius`` µm, ``spacing`` µm apart, one of them near the middle of the tile."""
        centre = self.grid(spacing, 0.18, margin=1.6 * spacing)
        middle = self.extent * self.rng.uniform(0.3, 0.7, 2)
        nearest = ((centre - middle) ** 2).sum(1).argmin()
        centre = centre + (middle - centre[nearest]).astype(np.float32)
        n = len(centre)
        return Rings(
            centre,
            (radius * np.exp(spread * self.rng.standard_normal(n))).astype(np.float32),
            (wavy * self.rng.normal(0, (1.0, 0.7, 0.4), (n, 3))).astype(np.float32),
            self.rng.uniform(0, 2 * np.pi, (n, 3)).astype(np.float32),
        )

    def polar(self, rings: Rings) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Each pixel as its nearest ring sees it: rho (1 on the outline), angle, ring index."""
        _, owner = cKDTree(rings.centre).query(np.stack([self.x, self.y], -1))
        dx, dy = self.x - rings.centre[owner, 0], self.y - rings.centre[owner, 1]
        theta = np.arctan2(dy, dx)
        return np.hypot(dx, dy) / rings.outline(owner, theta), theta, owner
