"""VS Code bridge: the models of windows, and the names by which clients find them.

A model is found by its key, its id, its family, or another spelling of one of these (see wire/model_names.py): without a date, with 4-5
for 4.5, after a provider's name. "sonnet" alone, and similar names, mean the newest of that line. A name never means a model of another
version.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from ....dialects.base import ModelLine
from ....wire.model_names import Spelling, readings_of, spelling_of
from .shapes import ListedModel

OWN = "toolwire"  # the vendor of the gateway's own models in VS Code, whose requests would loop
_PREFERRED = "copilot"  # of several vendors
_LINE = re.compile(r"(?:claude-)?(haiku|sonnet|opus)(?:[-:@]latest)?", re.ASCII | re.IGNORECASE)
_NUMBER = re.compile(r"\d{1,4}", re.ASCII)


def unique_models(models: Iterable[ListedModel]) -> list[ListedModel]:
    """Each model once, without the gateway's own."""
    found = {model.key: model for model in models if model.vendor.lower() != OWN and model.key}
    return list(found.values())


def listing(models: Sequence[ListedModel]) -> list[ModelLine]:
    """Each model once, by its id, or by its key if another vendor has the same id."""
    models = unique_models(models)
    ids = Counter(model.id for model in models)
    lines = [
        ModelLine(
            id=model.id if model.id and ids[model.id] == 1 else model.key,
            owner=model.vendor,
            title=model.name,
            context=max(0, model.max_input_tokens),
        )
        for model in models
    ]
    return list({line.id: line for line in lines}.values())


def find(name: str, models: Sequence[ListedModel]) -> ListedModel | None:
    """The model of this name; of several that of the vendor copilot, else the first."""
    models = sorted(unique_models(models), key=lambda model: model.vendor != _PREFERRED)
    for member in ("key", "id", "family"):
        if (found := next((model for model in models if getattr(model, member) == name), None)) is not None:
            return found
    return _respelled(name, models) or _newest(name, models)


def _respelled(name: str, models: Sequence[ListedModel]) -> ListedModel | None:
    """The nearest reading first."""
    for reading in readings_of(name, ()):
        for model in models:
            if _is_meant(reading, _spellings(model)):
                return model
    return None


def _is_meant(reading: Spelling, spellings: list[Spelling]) -> bool:
    """A name with a date never means another snapshot."""
    is_its = any(spelled.stem == reading.stem and reading.fits(spelled) for spelled in spellings)
    return is_its and not any(reading.date and spelled.date not in ("", reading.date) for spelled in spellings)


def _spellings(model: ListedModel) -> list[Spelling]:
    names = (model.id, model.family, model.key.partition("/")[2], model.name.replace(" ", "-"))
    return [spelled for name in names if name and (spelled := spelling_of(name)) is not None]


def _newest(name: str, models: Sequence[ListedModel]) -> ListedModel | None:
    """For the name of a line of models without a version."""
    line = _LINE.fullmatch(name[:60])
    if line is None:
        return None
    of_line = [model for model in models if line[1].lower() in f"{model.family} {model.id}".lower()]
    return max(of_line, key=_version, default=None)


def _version(model: ListedModel) -> tuple[int, ...]:
    """The numbers of its name, without a date."""
    return tuple(int(number) for number in _NUMBER.findall(model.family or model.id) if len(number) <= 2)
