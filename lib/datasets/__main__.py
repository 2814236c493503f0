"""``python -m lib.datasets``: write the table of a dataset, one row per image, for notebooks to read."""

import argparse
from collections import Counter
from pathlib import Path

from lib.datasets import images, loaders
from lib.datasets.catalogue import describe
from lib.errors import one_message


def main() -> None:
    """Parse the command line, look through the folder, try every image, and say what was written.

    Images are decoded here, so that all that cannot be are named once, before an encoder waits for them.
    """
    parser = argparse.ArgumentParser(prog="python -m lib.datasets", description=__doc__.split(": ")[1])
    parser.add_argument("--dataset", required=True, help="name of the loader, for example tissue, kather, folder")
    parser.add_argument("--root", required=True, type=Path, help="folder of the dataset")
    parser.add_argument("--target", required=True, type=Path, help="table to write (.csv)")
    parser.add_argument("--on-broken", choices=("error", "skip"), default="error", help="unreadable images")
    arguments = parser.parse_args()

    table = loaders.load(arguments.dataset, arguments.root)
    broken = images.unreadable([table.path(row) for row in range(len(table))], table.name)
    if broken and arguments.on_broken == "error":
        raise images.broken(broken)
    table.write(arguments.target)
    print(f"{arguments.target}: {describe(table)}")
    for why, n in Counter(why for _, why in table.skipped).items():
        example = next(what for what, reason in table.skipped if reason == why)
        print(f"left out: {example} ({why})" + f" and {n - 1:,} more" * (n > 1))


if __name__ == "__main__":
    one_message(main)
