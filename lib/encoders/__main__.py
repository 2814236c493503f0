"""``python -m lib.encoders``: extract the features of a table's images into a cache file."""

import argparse
import warnings
from pathlib import Path

from lib import devices
from lib.datasets import images
from lib.datasets.table import ImageTable
from lib.encoders import cache, registry
from lib.errors import MissingWeights, one_message


def main() -> None:
    """Parse the command line, extract, and say what was written."""
    parser = argparse.ArgumentParser(prog="python -m lib.encoders", description=__doc__.split(": ")[1])
    parser.add_argument("--table", required=True, type=Path, help="table of images (.csv) from python -m lib.datasets")
    parser.add_argument(
        "--encoder",
        required=True,
        help="texture, demo_vit, dino_vits16, uni2_h, ... (lib.encoders.models), any timm model, <network>-untrained",
    )
    parser.add_argument("--target", required=True, type=Path, help="feature file to write (.safetensors)")
    parser.add_argument("--n-views", type=int, help="write a folder of so many augmented views of each image instead")
    parser.add_argument("--on-broken", choices=("error", "skip"), default="error", help="unreadable images")
    parser.add_argument(
        "--on-missing", choices=("error", "note"), default="error", help="weights that are not here: fail, or note it"
    )
    arguments = parser.parse_args()

    devices.of_profile(arguments.table.parent.name)  # build/tables/<profile>/<dataset>.csv
    warnings.filterwarnings("ignore", images.TOLD)  # said when the table was made, and by every encoder again
    table = ImageTable.read(arguments.table)
    try:
        encoder = registry.make(arguments.encoder)
    except MissingWeights as error:
        if arguments.on_missing == "error":
            raise
        if cache.keep(arguments.target, table, arguments.encoder):
            print(f"{arguments.target}: stays as it was extracted. {error}")
        else:
            cache.note_missing(arguments.target, str(error))
            print(f"{arguments.target}: no features. {error}")
        return
    if arguments.n_views is not None:
        from lib.encoders import views

        table, values = views.extract(
            table, encoder, arguments.target, arguments.n_views, on_broken=arguments.on_broken
        )
        print(f"{arguments.target}: {len(values)} views of {len(table)} images, {encoder.dim} numbers each")
        return
    features = cache.extract(table, encoder, arguments.target, arguments.on_broken)
    count, dim = features.values.shape
    print(f"{arguments.target}: {count} images, {dim} numbers each, {len(features.skipped)} skipped")
    for reason in features.skipped.values():
        print(f"skipped: {reason}")


if __name__ == "__main__":
    one_message(main)
