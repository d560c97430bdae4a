"""Matches a prompt with tools, and finds texts and numbers in it that may be arguments."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from msgspec import Struct

from ...types import Tool
from .prompt_paths import absolute, paths_in
from .prompt_phrases import location_in, searched_in, text_for, tool_words, wildcard_in

_READ = 4000  # characters of a prompt or description that are used
_MOST_HINTS = 20
_NAME_WEIGHT = 3
_ROOM = 100
_STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be by can could do does for from get give has have how i in is it its let make me my of on "
        "or please set should some tell that the their then there this to use using want was we what when where which "
        "who will with would you your",
    )
)
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_PREFIXED = re.compile(r"(?:\w{1,64}(?:__|[-./:])){1,3}([A-Za-z][A-Za-z0-9_]{2,64})")
_WORD = re.compile(r"[^\W_]+")
_QUOTED = re.compile(r"\"([^\"]{1,500})\"|“([^”]{1,500})”|`([^`]{1,500})`|(?<!\w)'([^']{1,500})'(?!\w)")
_RUN = r"[A-Z][\w'’-]*(?:\s[A-Z][\w'’-]*){0,5}"
_AFTER = re.compile(
    rf"\b(?:in|of|for|to|at|from|about)\s+((?-i:{_RUN})|(?!(?:the|an?|my|me|your|you|it|this|that|do|be)\b)[\w@./:-]+)",
    re.IGNORECASE,
)
_CAPITALISED = re.compile(rf"(?<=[\w,;:] ){_RUN}")
_SPECIAL = re.compile(r"[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+|https?://[^\s\"'<>)]{1,500}|\d{4}-\d\d-\d\d(?:T[\d:.]+Z)?")
_NUMBER = re.compile(r"(?<![\w.-])-?\d{1,15}(?:\.\d{1,15})?(?![\w-])(?!\.\d)")


class PromptHints(Struct, frozen=True):
    """texts, paths and numbers: in the order in which to use them. words: stems. workspace: the folder of the client.

    location: the text that names a folder, as in "files in src". wildcard: a pattern of file names.
    """

    prompt: str = ""
    texts: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    workspace: str = ""
    quoted: tuple[str, ...] = ()
    numbers: tuple[int | float, ...] = ()
    words: frozenset[str] = frozenset()
    location: str = ""
    wildcard: str = ""

    def names(self, name: str) -> bool:
        """Whether the prompt has every word of this name."""
        stems = stems_of(name)
        return bool(stems) and stems <= self.words

    def value_of(self, name: str) -> str | None:
        """The text after the name, as in `city: Oslo` or `city=Oslo`."""
        if not name or len(name) > 100:
            return None
        spelled = re.escape(name).replace("_", "[_ ]")
        found = re.search(
            rf"(?<!\w){spelled}\s?(?:=|:|\bis\b)\s?(?:\"([^\"]*)\"|([^\s,;]+))", self.prompt, re.IGNORECASE
        )
        return None if found is None else (found[1] or found[2] or "").rstrip(".!?")

    def phrase_for(self, name: str) -> str:
        """The text that a phrase such as "run ls -la" or "replace a with b" gives for this property."""
        return text_for(frozenset(_WORD.findall(_HUMP.sub(" ", name[:_READ]).lower())), self.prompt)

    def located(self, path: str, description: str) -> str:
        """The path as its property needs it: absolute if the description has that word."""
        return absolute(path, self.workspace) if "absolute" in description.lower() else path


def hints_of(prompt: str, workspace: str = "", tools: Collection[str] = ()) -> PromptHints:
    """Quoted texts come first, then words after a preposition, then names, then addresses and dates. tools are names, which are
    no arguments."""
    read = prompt[:_READ]
    paths = tuple(path for path in paths_in(read) if path not in tools)
    plain = _masked(read, paths)
    quoted = [text for groups in _QUOTED.findall(read) if (text := "".join(groups)) not in tools]
    found = [*quoted, *searched_in(plain), *(text.rstrip(".,:;!?") for text in _AFTER.findall(plain))]
    found += [*_CAPITALISED.findall(plain), *_SPECIAL.findall(read)]
    is_other = {*paths, *tools}
    texts = tuple(
        dict.fromkeys(text for text in found if text not in is_other and text and not _NUMBER.fullmatch(text))
    )
    numbers = [float(text) if "." in text else int(text) for text in _NUMBER.findall(_SPECIAL.sub(" ", plain))]
    return PromptHints(
        prompt=read,
        texts=texts[:_MOST_HINTS],
        paths=paths,
        workspace=workspace,
        quoted=tuple(quoted[:_MOST_HINTS]),
        numbers=tuple(numbers[:_MOST_HINTS]),
        words=stems_of(read, keep_stop_words=True),
        location=location_in(plain, texts),
        wildcard=wildcard_in(read),
    )


def stems_of(text: str, *, keep_stop_words: bool = False) -> frozenset[str]:
    """The words of a text or a name, without their endings."""
    words = [word.lower() for word in _WORD.findall(_HUMP.sub(" ", text[:_READ]))]
    return frozenset(_stem(word) for word in words if keep_stop_words or word not in _STOP_WORDS)


def named_tools(tools: Sequence[Tool], prompt: str) -> list[Tool]:
    """The tools that the prompt names, in its order, with or without a prefix that a client added (`City-get_time`)."""
    read = prompt[:_READ]
    places = ((max(_place(tool.name, read), _place(_bare(tool.name), read)), tool) for tool in tools)
    return [tool for place, tool in sorted(places, key=lambda pair: pair[0]) if place >= 0]


def score(tool: Tool, prompt: str) -> int:
    """The number of common words. The name of the tool weighs most, above all its verb, then its description and properties."""
    paths = paths_in(prompt[:_READ])
    plain = _masked(prompt[:_READ], paths)
    words = stems_of(plain)
    has_verb = bool(_first_stem(tool.name)) and _first_stem(tool.name) == _first_stem(prompt)
    properties = (tool.schema or {}).get("properties")
    names = " ".join(list(properties)[:100]) if isinstance(properties, dict) else ""
    name = stems_of(tool.name)
    alike = stems_of(" ".join(tool_words(plain, paths)))
    unasked = len((name & _CHANGING) - words - alike)  # tools that change something need their verb in the prompt
    named = _NAME_WEIGHT * (len(words & name) + has_verb + bool(name & alike) - unasked)
    return named + len(words & stems_of(tool.description or "")) + len(words & stems_of(names))


def has_path_for(tool: Tool, prompt: str) -> bool:
    """Whether the prompt has a path, or a word that may be one, for the file that the tool requires."""
    hints = hints_of(prompt)
    if hints.paths or any(len(text.split()) == 1 for text in hints.texts):
        return True
    properties, required = ((tool.schema or {}).get(key) for key in ("properties", "required"))
    if not isinstance(required, list) or not isinstance(properties, dict):
        return True
    places = {name: properties.get(name) for name in required if isinstance(name, str) and is_place(name)}
    return all(is_folder(f"{tool.name} {name}", str(rules)) for name, rules in places.items())


def is_place(name: str) -> bool:
    """Whether a property of this name is a file or a folder."""
    return bool(stems_of(name) & _PLACES)


def is_folder(name: str, description: str) -> bool:
    """Whether it is a folder."""
    return bool(stems_of(f"{name} {description}") & _FOLDERS)


def likely_number(name: str, description: str) -> int | None:
    """For a prompt without numbers: lines and pages count from 1, and a limit is large."""
    stems = stems_of(name)
    if stems & _LIMITS:
        return _ROOM
    is_counted = bool(stems & _COUNTED) or re.search(r"\b1-(?:based|indexed)\b", description) is not None
    return 1 if is_counted else None


def _first_stem(text: str) -> str:
    """The stem of the first word; "" for a stop word."""
    found = _WORD.search(_HUMP.sub(" ", text[:_READ]))
    return "" if found is None or found[0].lower() in _STOP_WORDS else _stem(found[0].lower())


def _masked(text: str, paths: Sequence[str]) -> str:
    """Without the paths, whose parts are not words."""
    for path in paths:
        text = text.replace(path, "\0")
    return text


def _bare(name: str) -> str:
    """The name without its prefix, if the rest is not an ordinary word; else ""."""
    found = _PREFIXED.fullmatch(name)
    return found[1] if found is not None and ("_" in found[1] or _HUMP.search(found[1])) else ""


def _place(name: str, text: str) -> int:
    """The position of the name as a separate word, or -1."""
    found = re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", text) if name else None
    return -1 if found is None else found.start()


def _stem(word: str) -> str:
    """Approximate: cities and city become citi, making and make become mak."""
    for ending in ("ing", "ed", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word.removesuffix(ending)
            break
    if len(word) > 3:
        word = word.removesuffix("e")
    return f"{word[:-1]}i" if word.endswith("y") else word


_PLACES = stems_of("path file filename filepath dir directory folder cwd")
_FOLDERS = stems_of("dir directory folder cwd")
_CHANGING = stems_of("create delete edit insert install kill remove rename replace run write")
_COUNTED = stems_of("line page")
_LIMITS = stems_of("end limit max maximum")
