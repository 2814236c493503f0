"""``python -m lib.datasets.tissue --n_tiles 2000 ...``: draw tiles, by default where the pipelines look for them."""

import argparse
import inspect
from pathlib import Path

from lib import paths
from lib.datasets.tissue import write
from lib.errors import one_message


def main() -> None:
    """One option per argument of :func:`write`, with its default."""
    parser = argparse.ArgumentParser(prog="python -m lib.datasets.tissue", description=__doc__)
    for name, argument in inspect.signature(write).parameters.items():
        default, kind = (paths.images("tissue"), Path) if name == "root" else (argument.default, type(argument.default))
        parser.add_argument(f"--{name}", type=kind, default=default, help="default: %(default)s")
    write(**vars(parser.parse_args()))


if __name__ == "__main__":
    one_message(main)
