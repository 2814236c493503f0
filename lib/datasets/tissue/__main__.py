"""``python -m lib.datasets.tissue --n_tiles 2000 ...``: draw the embedded tiles where the pipelines look for them."""

import argparse
import inspect

from lib import paths
from lib.datasets.tissue import write
from lib.errors import one_message


def main() -> None:
    """One option per argument of :func:`write`, with its default."""
    parser = argparse.ArgumentParser(prog="python -m lib.datasets.tissue", description=__doc__)
    for name, argument in inspect.signature(write).parameters.items():
        if name != "root":
            parser.add_argument(f"--{name}", type=type(argument.default), default=argument.default)
    write(paths.images("tissue"), **vars(parser.parse_args()))


if __name__ == "__main__":
    one_message(main)
