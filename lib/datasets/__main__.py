"""``python -m lib.datasets``: write the table of a dataset, one row per image, for notebooks to read."""

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

from lib.datasets import images, loaders
from lib.errors import InputError, one_message


def main() -> None:
    """Parse the command line, look through the folder, try every image, and say what was written.

    Images are decoded here, so that all that cannot be are named once, before an encoder waits for them.
    """
    parser = argparse.ArgumentParser(prog="python -m lib.datasets", description=__doc__.split(": ")[1])
    parser.add_argument("--dataset", required=True, help="name of the loader, for example tissue, kather, folder")
    parser.add_argument("--root", required=True, type=Path, help="folder of the dataset")
    parser.add_argument("--target", required=True, type=Path, help="table to write (.csv)")
    parser.add_argument(
        "--option", action="append", default=[], metavar="KEY=VALUE", help="option of the loader; may be repeated"
    )
    parser.add_argument("--on-broken", choices=("error", "skip"), default="error", help="unreadable images")
    arguments = parser.parse_args()

    options = dict(_option(text) for text in arguments.option)
    try:
        table = loaders.load(arguments.dataset, arguments.root, **options)
    except TypeError as error:
        if "unexpected keyword argument" not in str(error):
            raise
        raise InputError(f"--option: the loader {arguments.dataset} does not take one of them: {error}") from error
    broken = images.unreadable([table.path(row) for row in range(len(table))], table.name)
    if broken and arguments.on_broken == "error":
        raise images.broken(broken)
    table.write(arguments.target)
    print(f"{arguments.target}: {table.describe()}")
    for why, n in Counter(why for _, why in table.skipped).items():
        example = next(what for what, reason in table.skipped if reason == why)
        print(f"left out: {example} ({why})" + f" and {n - 1:,} more" * (n > 1))


def _option(text: str) -> tuple[str, Any]:
    """``key=value`` as a pair; the value as JSON where it is JSON (400, true), otherwise as text (200X)."""
    key, equals, value = text.partition("=")
    if not equals or not key.isidentifier():
        raise InputError(f"--option wants KEY=VALUE, for example magnification=200X, not {text!r}.")
    try:
        return key, json.loads(value)
    except json.JSONDecodeError:
        return key, value


if __name__ == "__main__":
    one_message(main)
