"""How a model writes a call into its text: as instructed, with mistakes, or in its own trained format."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple


class Wish(NamedTuple):
    """A call that the model intends. attempt: how often this one was rejected before."""

    name: str
    arguments: dict[str, Any]
    step: int = 0
    attempt: int = 0


Written = Callable[[str, list[Wish]], str]  # text before the calls, the calls -> the model's answer


def plain(text: str, wishes: list[Wish]) -> str:
    blocks = [f"<tool_call>\n{_object(wish)}\n</tool_call>" for wish in wishes]
    return "\n\n".join([text, *blocks] if text else blocks)


def sloppy(text: str, wishes: list[Wish]) -> str:
    """Two invalid calls, each rejected once; every other call has a format mistake."""
    (wish,) = wishes
    if wish.step == 0 and wish.attempt == 0:
        return f"{text}\n{plain('', [wish._replace(name='look_into_the_file')])}"
    if wish.step == 1 and wish.attempt == 0:
        return f'Writing now.\n<tool_call>{{"name": {json.dumps(wish.name)}}}</tool_call>'
    return _SLOPPY[wish.step % len(_SLOPPY)](text, wish)


def _fenced_string(text: str, wish: Wish) -> str:
    written = json.dumps({"name": wish.name, "arguments": json.dumps(wish.arguments)})
    return f"{text}\nI use <tool_call> for it:\n\n<TOOL_CALL>\n```json\n{written}\n```\n</TOOL_CALL>\nNow I wait."


def _list_with_blanks(text: str, wish: Wish) -> str:
    return f"  {text}\n<tool_call >\n[{_object(wish)}]\n</ tool_call>\n</tool_call>\n"


def _other_word_without_end(text: str, wish: Wish) -> str:
    written = json.dumps({"parameters": wish.arguments, "name": wish.name}, indent=2, ensure_ascii=False)
    return f"{text}\n<tool_call>{written}"


_SLOPPY = (_fenced_string, _list_with_blanks, _other_word_without_end)


def qwen_xml(text: str, wishes: list[Wish]) -> str:
    blocks = []
    for wish in wishes:
        parameters = "".join(f"<parameter={key}>\n{_bare(value)}\n</parameter>\n" for key, value in _members(wish))
        blocks.append(f"<tool_call>\n<function={wish.name}>\n{parameters}</function>\n</tool_call>")
    return "\n".join([text, *blocks])


def mistral_list(text: str, wishes: list[Wish]) -> str:
    return f"{text}[TOOL_CALLS][{', '.join(map(_object, wishes))}]"


def mistral_named(text: str, wishes: list[Wish]) -> str:
    return text + "".join(f"[TOOL_CALLS]{wish.name}[ARGS]{_json(wish.arguments)}" for wish in wishes)


def llama_json(text: str, wishes: list[Wish]) -> str:
    """The call is the whole answer."""
    return "; ".join(_json({"name": wish.name, "parameters": wish.arguments}) for wish in wishes)


def pythonic(text: str, wishes: list[Wish]) -> str:
    """The call is the whole answer."""
    calls = [f"{wish.name}({', '.join(f'{key}={value!r}' for key, value in _members(wish))})" for wish in wishes]
    return f"[{', '.join(calls)}]"


def dsml(text: str, wishes: list[Wish]) -> str:
    calls = "".join(
        f'<｜DSML｜invoke name="{wish.name}">\n{"".join(map(_dsml_parameter, _members(wish)))}</｜DSML｜invoke>\n'
        for wish in wishes
    )
    return f"{text}\n\n<｜DSML｜function_calls>\n{calls}</｜DSML｜function_calls>"


def _dsml_parameter(member: tuple[str, Any]) -> str:
    key, value = member
    is_text = "true" if isinstance(value, str) else "false"
    return f'<｜DSML｜parameter name="{key}" string="{is_text}">{_bare(value)}</｜DSML｜parameter>\n'


def harmony(text: str, wishes: list[Wish]) -> str:
    calls = "".join(
        f"<|start|>assistant<|channel|>commentary to=functions.{wish.name} <|constrain|>json"
        f"<|message|>{_json(wish.arguments)}<|call|>"
        for wish in wishes
    )
    return f"{text}{calls}"


def kimi(text: str, wishes: list[Wish]) -> str:
    calls = "".join(
        f"<|tool_call_begin|>functions.{wish.name}:{place}<|tool_call_argument_begin|>{_json(wish.arguments)}<|tool_call_end|>"
        for place, wish in enumerate(wishes)
    )
    return f"{text}<|tool_calls_section_begin|>{calls}<|tool_calls_section_end|>"


def glm(text: str, wishes: list[Wish]) -> str:
    blocks = []
    for wish in wishes:
        members = [
            f"<arg_key>{key}</arg_key>\n<arg_value>{_bare(value)}</arg_value>\n" for key, value in _members(wish)
        ]
        blocks.append(f"<tool_call>{wish.name}\n{''.join(members)}</tool_call>")
    return "\n".join([text, *blocks])


def _members(wish: Wish) -> list[tuple[str, Any]]:
    return list(wish.arguments.items())


def _object(wish: Wish) -> str:
    return _json({"name": wish.name, "arguments": wish.arguments})


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _bare(value: Any) -> str:
    return value if isinstance(value, str) else _json(value)


TOLD: dict[str, Written] = {"plain": plain, "sloppy": sloppy}
OWN: dict[str, Written] = {
    "hermes": plain,
    "qwen-xml": qwen_xml,
    "mistral-list": mistral_list,
    "mistral-named": mistral_named,
    "llama-json": llama_json,
    "pythonic": pythonic,
    "dsml": dsml,
    "harmony": harmony,
    "kimi": kimi,
    "glm": glm,
}
MANNERS = TOLD | OWN
