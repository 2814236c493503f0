"""Features and fingerprints of 240 images of three classes in four folds, and who learns and who tunes."""

import numpy as np

from lib.papers.acir import heads
from lib.training.fit import Schedule

RNG = np.random.default_rng(0)
N, DIM, SIDE, CLASSES, BITS = 240, 10, 2, 3, 6
LABELS, FOLDS = np.arange(N) % CLASSES, np.arange(N) // 10 % 4
PRINTS = RNG.random((N, 3 * SIDE**2)).astype(np.float32)
CENTRES = RNG.normal(size=(CLASSES, DIM))
X = np.concatenate([(CENTRES[LABELS] + RNG.normal(size=(N, DIM))).astype(np.float32), PRINTS], axis=1)
PLAN = heads.Plan(DIM, PRINTS.shape[1], CLASSES, Schedule(epochs=2, batch_size=40, lr=1e-2))
SPLIT, ASIDE = heads.parts(FOLDS, seed=3)
