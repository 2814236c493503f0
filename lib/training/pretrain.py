"""Train the small vision transformer by self-distillation without labels, and write its weights.

``python -m lib.training.pretrain --dataset tissue --root build/data/tissue --steps 300 --target weights.safetensors``
"""

import argparse
from pathlib import Path

from lib.datasets import loaders
from lib.datasets.catalogue import describe
from lib.encoders import small_vit
from lib.errors import InputError, one_message
from lib.training import dino
from lib.training.distillation import Settings
from lib.training.pixels import load_images


def main() -> None:
    """Parse the command line, train, and write the weights unless the training collapsed."""
    parser = argparse.ArgumentParser(prog="python -m lib.training.pretrain", description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", required=True, help="name of the loader, for example tissue, kather, folder")
    parser.add_argument("--root", required=True, type=Path, help="folder of the dataset")
    parser.add_argument("--target", required=True, type=Path, help="weights to write (.safetensors)")
    parser.add_argument("--steps", type=int, default=Settings.steps, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    parser.add_argument("--device", default="auto", help="cpu, cuda or auto (default)")
    parser.add_argument("--on-broken", choices=("error", "skip"), default="error", help="unreadable images")
    arguments = parser.parse_args()
    if arguments.steps < 1:
        raise InputError(f"--steps {arguments.steps}: train for at least one step.")
    table = loaders.load(arguments.dataset, arguments.root)
    pixels = load_images(table, seed=arguments.seed, on_broken=arguments.on_broken)
    settings = Settings(steps=arguments.steps)
    done = dino.pretrain(pixels, settings, seed=arguments.seed, device=arguments.device)
    if done.collapsed:
        raise InputError(f"{arguments.target} is not written: {done.verdict()}. Try another seed or more images.")
    seen = "" if len(pixels) == len(table) else f"{len(pixels):,} of "
    about = f"DINO, {settings.steps} steps of {settings.batch_size}, seed {arguments.seed}, on {seen}{describe(table)}"
    small_vit.save(done.network, arguments.target, about)
    print(f"{arguments.target}: {about}; loss {done.history['loss'].iloc[-1]:.2f}, {done.verdict()}")


if __name__ == "__main__":
    one_message(main)
