"""Reading params.yaml, and refusing in words what cannot be run, before anything is started."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from lib.errors import InputError, suggestion
from lib.pipeline.meaning import MEANING

TEXT, MERGE = "tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"
UNTRAINED = "-untrained"
SIZED = re.compile(r"(efficientnet_lite0)_([1-9]\d*)px")
"""A network and the side of the square that it sees, which it halves five times."""
OF_THE_RUN = ("profile", "dataset")
"""Parameters of a notebook that are not set by hand: they say where its results go."""


def load(path: Path) -> dict[str, Any]:
    """The content of a YAML file.

    Raises InputError, with the lines, for a file that is missing or no YAML, a key that stands twice (YAML silently
    takes the last), a key that YAML does not take for text (no, 1), and unquoted numbers that it does (1e-5).
    """
    path = Path(path)
    try:
        loader = yaml.SafeLoader(path.read_text(encoding="utf-8"))
        node = loader.get_single_node()
        if not isinstance(node, yaml.MappingNode):
            raise InputError(f"{path}: holds no settings; write lines like `name: value`")
        _refuse(path, list(_slips(node, set())))
        return loader.construct_document(node)
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError(f"{path} is not there; take it from the repository: git checkout {path.name}") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else "?"
        raise InputError(f"{path}: line {line} cannot be read as YAML ({error.problem})") from error
    except (yaml.YAMLError, OSError, ValueError, LookupError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read as YAML ({' '.join(str(error).split())})") from error


def check_runs(
    runs: Mapping[str, Mapping[str, Mapping[str, Any]]],
    parameters_of: Mapping[str, Mapping[str, Any]],
    datasets: Collection[str],
    encoders: Collection[str],
    where: str = "params.yaml",
) -> None:
    """Refuse runs that cannot be: all faults in one message.

    Args:
        runs: stage → dataset → parameters of the notebook.
        parameters_of: stage → parameters of its notebook with their defaults; these are the stages that there are.
        datasets: names that a run can have, beside the one that its notebook has by default.
        encoders: names that ``encoder`` and ``beside`` can have; each also with "-untrained" behind it.
        where: the file that the runs are from.

    Raises:
        InputError: for an unknown stage, dataset, encoder or parameter, with what may have been meant, and for a value
            of another type or without meaning (:data:`lib.pipeline.meaning.MEANING`).
    """
    if not isinstance(runs, Mapping):
        raise InputError(f"{where}: runs = {runs!r} cannot be used: write stages with their datasets")
    faults = []
    for stage, by_dataset in runs.items():
        if stage not in parameters_of:
            faults += _of_names("stage", [stage], parameters_of)
        elif not isinstance(by_dataset, Mapping):
            faults.append(f"{stage} = {by_dataset!r} cannot be used: write datasets with their parameters, or {{}}")
        else:
            defaults = parameters_of[stage]
            known = list(datasets) + [defaults["dataset"]] * ("dataset" in defaults)
            for dataset, given in by_dataset.items():
                found = list(_of_names("dataset", [dataset], known))
                found += _of_parameters(given, defaults)
                found += _of_names("encoder", _encoders(given), encoders)
                faults += [f"{stage}, {dataset}: {fault}" for fault in found]
    _refuse(where, faults)


def check_parameters(given: Mapping[str, Any], defaults: Mapping[str, Any], where: str) -> None:
    """Refuse what :func:`check_runs` does of the parameters of one notebook; ``where`` they are from.

    >>> check_parameters({"epoch": 5}, {"epochs": 25, "lr": 0.001}, "params.yaml")
    Traceback (most recent call last):
    lib.errors.InputError: params.yaml: there is no parameter 'epoch': did you mean epochs?
    """
    _refuse(where, list(_of_parameters(given, defaults)))


def check_keys(given: Any, keys: Collection[str], where: str) -> None:
    """Refuse anything but a mapping with exactly these ``keys``.

    >>> check_keys({"profile": "demo", "imags": "data"}, ("profile", "images"), "params.yaml")
    Traceback (most recent call last):
    lib.errors.InputError: params.yaml: there is no setting 'imags': did you mean images?
    """
    if not isinstance(given, Mapping):
        raise InputError(f"{where}: {given!r} cannot be used: write {', '.join(keys)} with their values")
    _refuse(where, list(_of_names("setting", given, keys)))
    _refuse(where, [f"{key} is missing" for key in keys if key not in given])


def check_names(what: str, given: Any, known: Collection[str], where: str) -> None:
    """Refuse anything but a list of ``known`` names, as the ``datasets`` and ``encoders`` of a profile are.

    >>> check_names("dataset", ["kahter"], ["kather", "ham10000"], "params.yaml")
    Traceback (most recent call last):
    lib.errors.InputError: params.yaml: there is no dataset 'kahter': did you mean kather?
    """
    if not isinstance(given, list):
        raise InputError(f"{where}: {given!r} cannot be used: write a list of {what}s, such as [{next(iter(known))}]")
    _refuse(where, list(_of_names(what, given, known)))


def _of_names(what: str, given: Iterable[Any], known: Collection[str]) -> Iterator[str]:
    """What is wrong with names of stages, datasets or encoders."""
    for name in given:
        plain = _network(name) if what == "encoder" and isinstance(name, str) else name
        if not isinstance(name, str) or plain not in known:
            yield f"there is no {what} {name!r}: {suggestion(str(name), known)}"


def _network(name: str) -> str:
    """The network that an encoder's name is of: trained or not, at any side that it can see.

    >>> _network("texture-untrained"), _network("efficientnet_lite0_64px"), _network("efficientnet_lite0_65px")
    ('texture', 'efficientnet_lite0', 'efficientnet_lite0_65px')
    """
    plain = name.removesuffix(UNTRAINED)
    sized = SIZED.fullmatch(plain)
    return sized[1] if sized and int(sized[2]) % 32 == 0 else plain


def _of_parameters(given: Any, defaults: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with the parameters of one run."""
    if not isinstance(given, Mapping):
        yield f"{given!r} cannot be used: write parameters as {{epochs: 5}}, or {{}}"
        return
    known = [name for name in defaults if name not in OF_THE_RUN]
    for name, value in given.items():
        if name not in known:
            yield f"there is no parameter {name!r}: {suggestion(str(name), known) if known else 'it has none'}"
        elif name in MEANING:
            try:
                MEANING[name](name, value)
            except InputError as error:
                yield str(error)
        elif not _alike(value, defaults[name]):
            yield f"{name} = {value!r} cannot be used: it must be like {defaults[name]!r}"


def _encoders(given: Any) -> list[str]:
    """The encoders that the parameters of a run name."""
    values = [given.get(key, []) for key in ("encoder", "beside")] if isinstance(given, Mapping) else []
    names = [name for value in values for name in (value if isinstance(value, list) else [value])]
    return [name for name in names if isinstance(name, str)]


def _alike(value: Any, default: Any) -> bool:
    """Whether ``value`` has the type of ``default``, its items those of the default's, if any; 1 is a float too."""
    if default == []:
        return isinstance(value, list)
    if isinstance(default, list):
        return isinstance(value, list) and all(any(_alike(item, one) for one in default) for item in value)
    return type(value) is type(default) or (type(default) is float and type(value) is int)


def _slips(node: yaml.Node, seen: set[int]) -> Iterator[str]:
    """What YAML takes for something else than was meant, in a node and below; ``seen``: nodes that were looked at."""
    if id(node) in seen:  # an anchor
        return
    seen.add(id(node))
    line = node.start_mark.line + 1
    if isinstance(node, yaml.ScalarNode):
        if node.style is None and node.tag == TEXT and _is_number(node.value):
            meant = yaml.safe_dump(float(node.value)).split()[0]
            yield f"line {line}: {node.value} is text in YAML; write {meant}"
        return
    if isinstance(node, yaml.SequenceNode):
        for child in node.value:
            yield from _slips(child, seen)
        return
    first: dict[str, int] = {}
    for key, value in node.value:
        line = key.start_mark.line + 1
        if key.tag not in (TEXT, MERGE):
            yield f"line {line}: a name must be text; put {getattr(key, 'value', 'it')} in quotes"
        elif key.value in first:
            yield f"line {line}: {key.value} stands in line {first[key.value]} already; keep one of them"
        first.setdefault(str(key.value), line)
        yield from _slips(value, seen)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return any(sign.isdigit() for sign in text)


def _refuse(where: object, faults: list[str]) -> None:
    """Raise InputError with all faults, if there are any."""
    if len(faults) == 1:
        raise InputError(f"{where}: {faults[0]}")
    if faults:
        raise InputError(f"{where}:\n" + "\n".join(f"  {fault}" for fault in faults))
