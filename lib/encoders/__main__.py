"""``python -m lib.encoders``: extract the features of a dataset into a cache file."""

import argparse
import json
from pathlib import Path
from typing import Any

from lib import datasets, encoders
from lib.errors import InputError, one_message


def main() -> None:
    """Parse the command line, extract, and say what was written."""
    parser = argparse.ArgumentParser(prog="python -m lib.encoders", description=__doc__.split(": ")[1])
    parser.add_argument("--dataset", required=True, help="name of the loader, for example tissue, kather, folder")
    parser.add_argument("--root", required=True, type=Path, help="folder of the dataset")
    parser.add_argument(
        "--encoder",
        required=True,
        help="texture, demo_vit, dino_vits16, uni2_h, ... (lib.encoders.models), any timm model, <network>-untrained",
    )
    parser.add_argument("--target", required=True, type=Path, help="feature file to write (.safetensors)")
    parser.add_argument("--on-broken", choices=("error", "skip"), default="error", help="unreadable images")
    parser.add_argument(
        "--option", action="append", default=[], metavar="KEY=VALUE", help="option of the loader; may be repeated"
    )
    arguments = parser.parse_args()

    options = dict(_option(text) for text in arguments.option)
    try:
        table = datasets.load(arguments.dataset, arguments.root, **options)
    except TypeError as error:
        if "unexpected keyword argument" not in str(error):
            raise
        raise InputError(f"--option: the loader {arguments.dataset} does not take one of them: {error}") from error
    encoder = encoders.make(arguments.encoder)
    features = encoders.extract(table, encoder, arguments.target, arguments.on_broken)
    count, dim = features.values.shape
    print(f"{arguments.target}: {count} images, {dim} numbers each, {len(features.skipped)} skipped")
    for reason in features.skipped.values():
        print(f"skipped: {reason}")


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
