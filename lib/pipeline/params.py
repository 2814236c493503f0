"""Reading params.yaml, and refusing in words what cannot be run, before anything is started.

What a parameter may be stands in :mod:`lib.checks`, on which every training depends; what only notebooks have stands
here, so that a new notebook trains nothing anew. Functions named ``of_…`` give what is wrong, a sentence each.
"""

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from reprlib import repr as shortened
from typing import Any

import yaml

from lib import checks
from lib.encoders.models import PACKAGED, UNTRAINED
from lib.errors import InputError, suggestion

TEXT, MERGE = "tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"
SIZED = re.compile(rf"({'|'.join(PACKAGED)})_([1-9]\d*)px")
"""A network and the side of the square that it sees, which it halves five times."""
OF_THE_RUN = ("profile", "dataset")
"""Parameters of a notebook that are not set by hand: they say where its results go."""


def name(parameter: str, value: Any) -> None:
    """Refuse all but text with something in it."""
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{parameter} = {shortened(value)} cannot be used: it must be a name")


MEANING: dict[str, checks.Check] = checks.MEANING | {
    **dict.fromkeys(("decoder_epochs", "decoder_batch", "end_to_end_epochs", "n_novel", "repeats"), checks.whole),
    "decoder_lr": checks.positive,
    **dict.fromkeys(("end_to_end_rates", "classifier_rates"), partial(checks.several, each=checks.positive)),
    **dict.fromkeys(("n_choosing", "n_tried", "resize"), checks.whole),
    "choosing_steps": partial(checks.whole, least=0),  # 0: as many as the trainings take
    "end_to_end": partial(checks.several, each=name, least=0),  # settings of a head; without any, heads alone learn
    **dict.fromkeys(("turn_decoders", "published_rates", "curved"), checks.switch),
    "novel": partial(checks.several, each=name, least=0),  # datasets; without any, pictures are drawn
}
"""Parameter → the check that refuses a value without meaning."""


def load(path: Path) -> dict[str, Any]:
    """The content of a YAML file.

    Raises InputError, with the lines, for a file that is missing or no YAML, a key that stands twice (YAML silently
    takes the last), a key that YAML does not take for text (no, 1), and unquoted numbers that it does (1e-5).
    """
    try:
        loader = yaml.SafeLoader(path.read_text(encoding="utf-8"))
        node = loader.get_single_node()
        if not isinstance(node, yaml.MappingNode):
            raise InputError(f"{path}: holds no settings; write lines like `name: value`")
        refuse(path, _slips(node, set()))
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


def assigned(source: str) -> dict[str, Any]:
    """What lines of literals assign. Raises AttributeError or ValueError for anything else.

    >>> assigned("epochs = 5\\nlr, ks = 0.1, [1, 5]")
    {'epochs': 5, 'lr': 0.1, 'ks': [1, 5]}
    """
    values = {}
    for node in ast.parse(source).body:
        (target,), value = node.targets, ast.literal_eval(node.value)
        is_tuple = isinstance(target, ast.Tuple)
        names = [name.id for name in (target.elts if is_tuple else [target])]
        values |= zip(names, value if is_tuple else [value], strict=True)
    return values


def read_arguments(words: Sequence[str], defaults: dict[str, Any]) -> dict[str, Any]:
    """Turn ``--name value ...`` into notebook parameters, each with the type of its default; the last one wins.

    Args:
        words: as DVC unpacks a mapping of params.yaml; ``--flag`` and ``--no-flag`` are booleans.
        defaults: the notebook's own parameters.

    Raises:
        InputError: for a name that the notebook does not have, or a value of another type.

    >>> read_arguments(["--lr", "1e-05", "--lengths", "5", "full", "--no-whiten"],
    ...                {"lr": 0.1, "lengths": [5], "whiten": True})
    {'lr': 1e-05, 'lengths': [5, 'full'], 'whiten': False}
    """
    given: dict[str, list[str]] = {}
    for word in words:
        if word.startswith("--"):
            given[word[2:]] = current = []
        elif not given:
            raise InputError(f"expected --name value, found {word!r}")
        else:
            current.append(word)
    values = {}
    for name, texts in given.items():
        if name.startswith("no-") and name not in defaults:
            name, texts = name[3:], ["False"]
        if name not in defaults:
            raise InputError(f"the notebook has no parameter {name!r}; it has: {', '.join(defaults) or 'none'}")
        values[name] = _typed(name, texts, defaults[name])
    return values


def _typed(name: str, texts: list[str], default: Any) -> Any:
    if isinstance(default, list):
        return [_literal(text) for text in texts]
    if isinstance(default, bool):
        texts = texts or ["True"]
    value = " ".join(texts) if isinstance(default, str) else _literal(" ".join(texts))
    if isinstance(default, float) and type(value) is int:
        value = float(value)
    if type(value) is not type(default):
        raise InputError(f"parameter {name!r} is {value!r}, but the notebook expects a value like {default!r}")
    return value


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def refuse(where: object, faults: Iterable[str]) -> None:
    """Raise InputError with all faults, if there are any.

    >>> refuse("params.yaml", of_parameters({"epoch": 5}, {"epochs": 25, "lr": 0.001}))
    Traceback (most recent call last):
    lib.errors.InputError: params.yaml: there is no parameter 'epoch': did you mean epochs?
    """
    if (listed := list(faults)) and len(listed) == 1:
        raise InputError(f"{where}: {listed[0]}")
    if listed:
        raise InputError(f"{where}:\n" + "\n".join(f"  {fault}" for fault in listed))


def of_runs(
    runs: Any, parameters_of: Mapping[str, Mapping[str, Any]], datasets: Collection[str], encoders: Collection[str]
) -> Iterator[str]:
    """What is wrong with runs: stage → dataset → parameters of the notebook.

    Args:
        runs: of a profile.
        parameters_of: stage → parameters of its notebook with their defaults; these are the stages that there are.
        datasets: names that a run can have, besides the default of its notebook.
        encoders: names that ``encoder`` and ``beside`` can have; each also with "-untrained" behind it.
    """
    if not isinstance(runs, Mapping):
        yield f"runs = {runs!r} cannot be used: write stages with their datasets"
        return
    for stage, by_dataset in runs.items():
        if stage not in parameters_of:
            yield from of_names("stage", [stage], parameters_of)
        elif not isinstance(by_dataset, Mapping):
            yield f"{stage} = {by_dataset!r} cannot be used: write datasets with their parameters, or {{}}"
        else:
            defaults = parameters_of[stage]
            known = list(datasets) + [defaults["dataset"]] * ("dataset" in defaults)
            for dataset, given in by_dataset.items():
                faults = [*of_names("dataset", [dataset], known), *of_parameters(given, defaults)]
                faults += of_names("encoder", encoders_of(given), encoders)
                yield from (f"{stage}, {dataset}: {fault}" for fault in faults)


def of_parameters(given: Any, defaults: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with the parameters of one run: unknown ones, another type, no meaning (:data:`MEANING`)."""
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


def of_keys(given: Any, keys: Collection[str]) -> Iterator[str]:
    """What is wrong with a mapping that should have exactly these ``keys``."""
    if not isinstance(given, Mapping):
        yield f"{given!r} cannot be used: write {', '.join(keys)} with their values"
        return
    yield from of_names("setting", given, keys)
    yield from (f"{key} is missing" for key in keys if key not in given)


def of_names(what: str, given: Any, known: Collection[str]) -> Iterator[str]:
    """What is wrong with a list of names of stages, datasets or encoders, or with the keys of a mapping."""
    if not isinstance(given, list | Mapping):
        yield f"{given!r} cannot be used: write a list of {what}s, such as [{next(iter(known))}]"
        return
    for name in given:
        plain = network(name) if what == "encoder" and isinstance(name, str) else name
        if not isinstance(name, str) or plain not in known:
            yield f"there is no {what} {name!r}: {suggestion(str(name), known)}"


def encoders_of(given: Any) -> list[str]:
    """The encoders that the parameters of a run name."""
    values = [given.get(key, []) for key in ("encoder", "beside")] if isinstance(given, Mapping) else []
    names = [name for value in values for name in (value if isinstance(value, list) else [value])]
    return [name for name in names if isinstance(name, str)]


def network(name: str) -> str:
    """The network that an encoder's name is of: trained or not, at any side that it can see.

    >>> network("texture-untrained"), network("efficientnet_lite0_64px"), network("efficientnet_lite0_65px")
    ('texture', 'efficientnet_lite0', 'efficientnet_lite0_65px')
    """
    plain = name.removesuffix(UNTRAINED)
    sized = SIZED.fullmatch(plain)
    return sized[1] if sized and int(sized[2]) % 32 == 0 else plain


def _alike(value: Any, default: Any) -> bool:
    """Whether ``value`` has the type of ``default``, its items those of the default's, if any; 1 is a float too."""
    if default == []:
        return isinstance(value, list)
    if isinstance(default, list):
        return isinstance(value, list) and all(any(_alike(item, like) for like in default) for item in value)
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
