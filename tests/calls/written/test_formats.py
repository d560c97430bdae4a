"""The contract of all grammars for native formats: recordings, prose about a format, and texts cut anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.calls.written.formats.native import (
    CUTS,
    Tools,
    broken,
    calls,
    check_cut,
    check_prose,
    recorded,
    texts,
    words,
)
from toolwire.calls.written.formats import dsml, glm, harmony, kimi, llama, mistral, pythonic, qwen
from toolwire.calls.written.formats.grammar import Grammar


class Format(NamedTuple):
    """recordings: name, calls, other text. prose: texts that mention the format and are no calls. fragments: of random texts."""

    grammars: Sequence[Grammar]
    recordings: Sequence[tuple[str, list[object], str]] = ()
    prose: Sequence[str] = ()
    fragments: Sequence[str] = ()


FORMATS = {
    "dsml": Format(
        dsml.GRAMMARS,
        recordings=[
            ("dsml-single", [("get_weather", {"city": "杭州", "days": 10})], ""),
            (
                "dsml-parallel",
                [("get_weather", {"city": "Rome", "options": {"a": [1, {"b": "ü"}]}}), ("get_time", {})],
                "I will do both at once.\n\n\n\nWait for it.",
            ),
            (
                "dsml-two-bars",
                [("write_file", {"path": "notes.md", "content": "# Notes\n\n- 1 < 2\n- `</div>`\n"})],
                "",
            ),
            ("dsml-json", [("get_weather", {"city": "Turin", "days": 1})], ""),
            ("deepseek-v3", [("get_weather", {"city": "Bern", "note": "```"}), ("get_time", {})], "Let me see."),
            ("deepseek-v31", [("get_weather", {"city": "Graz"}), ("exec", {"command": "ls"})], ""),
        ],
        fragments=(
            "<｜DSML｜tool_calls>",
            '<｜DSML｜invoke name="get_weather">',
            '<｜DSML｜invoke name="get_time">',
            '<｜DSML｜parameter name="city" string="true">#',
            '<|DSML|parameter name="days">3',
            "</｜DSML｜parameter>",
            "</｜DSML｜invoke>",
            "</｜DSML｜tool_calls>",
            "<｜tool▁calls▁begin｜>",
            "<｜tool▁call▁begin｜>get_weather",
            "<｜tool▁call▁begin｜>function",
            "<｜tool▁sep｜>",
            '{"city": "#"}',
            "\n```json\n",
            "```",
            "<｜tool▁call▁end｜>",
            "<｜tool▁calls▁end｜>",
            " # ",
            "<｜",
        ),
    ),
    "glm": Format(
        (glm.IN_TAG,),
        recordings=[
            ("glm-single", [("get_weather", {"city": "Beijing", "days": 7})], ""),
            (
                "glm-parallel",
                [("get_weather", {"city": "北京"}), ("get_weather", {"city": "上海", "options": {"wind": [1, 2]}})],
                "好的，我来查一下。\n\n请稍等。",
            ),
            ("glm-empty", [("get_time", {})], ""),
        ],
        prose=[
            "<tool_call>get_weather is the name.",
            "<tool_call>nobody\n<arg_key>city</arg_key>\n<arg_value>a</arg_value>\n</tool_call>",
            "<tool_call>",
            "<tool_call>get_weather",
            "<tool_call>" + "x" * 300,
            'Text <arg_key>city</arg_key> <arg_value>"</arg_value>',
        ],
        fragments=(
            "\n<tool_call>",
            "get_weather",
            "get_time",
            "<arg_key>city",
            "<arg_key>days",
            "</arg_key>",
            "<arg_value>#",
            "</arg_value>",
            "</tool_call>",
            "\n",
            " # ",
            "<",
        ),
    ),
    "harmony": Format(
        harmony.GRAMMARS,
        fragments=(
            "<|start|>assistant",
            "<|channel|>",
            "analysis",
            "final",
            "commentary to=functions.get_weather ",
            " to=get_weather",
            "<|constrain|>json",
            "<|message|>",
            '{"city": "#"}',
            '{"city": "',
            "<|end|>",
            "<|call|>",
            "<|return|>",
            "\n# ",
            "<|",
        ),
    ),
    "kimi": Format(
        kimi.GRAMMARS,
        recordings=[
            ("kimi-single", [("get_weather", {"city": "杭州"})], ""),
            (
                "kimi-parallel",
                [("get_weather", {"city": "Pécs", "options": {"a": {"b": ["<|tool_call_end|>"]}}}), ("get_time", {})],
                "I check both. And wait.",
            ),
            ("kimi-no-section", [("exec", {"command": "ls"})], "Now the files: "),
        ],
        prose=[
            "Kimi writes <|tool_calls_section_begin|> before its calls and <|tool_calls_section_end|> behind them.",
            "<|tool_call_begin|> opens a call, functions.get_weather:0 names it.",
            "<|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|> and then JSON.",
            "<|tool_call_begin|>" + "x" * 400,
        ],
        fragments=(
            "<|tool_calls_section_begin|>",
            "<|tool_call_begin|>",
            "functions.get_weather:0",
            "call_1",
            "<|tool_call_argument_begin|>",
            '{"city": "#"}',
            '{"city": "',
            "{'city': '#'}",
            '"',
            "}",
            "<|tool_call_end|>",
            "<|tool_calls_section_end|>",
            " # ",
            "<|tool_call_begin|>functions.exec:0<|tool_call_argument_begin|>",
        ),
    ),
    "llama": Format(
        llama.GRAMMARS,
        recordings=[
            ("llama-tag", [("get_weather", {"city": "Austin", "days": 2})], ""),
            ("llama-several", [("get_weather", {"city": "Reykjavík"}), ("get_time", {})], "One moment. "),
            ("llama-call", [("exec", {"command": 'echo "hi"'})], ""),
        ],
        fragments=(
            "<|python_tag|>",
            '{"name": "get_weather", "parameters": {"city": "#"}}',
            '{"parameters": {"city": "#"}, "name": "get_weather"',
            '{"name": "',
            "; ",
            'exec.call(command="#")',
            "exec(",
            ")",
            " # ",
            '"',
            "}",
            "<|eom_id|>",
        ),
    ),
    "mistral": Format(
        mistral.GRAMMARS,
        prose=[
            "Mistral puts [TOOL_CALLS] before a list.",
            "[TOOL_CALLS] get_weather is the tool that I would take.",
            "[TOOL_CALLS]get_weather[ARGS] and then the arguments.",
            "[TOOL_CALLS][1, 2]",
            '[TOOL_CALLS][{"city": "Rome"}]',
            '[TOOL_CALLS]launch_rocket[ARGS]{"city": "Rome"}',
            '[TOOL_CALLS][{"name": "launch_rocket", "arguments": {}}]',
            "[TOOL_CALLS]" + "a" * 500,
            "[TOOL_CALLS]",
        ],
        fragments=(
            "[TOOL_CALLS]",
            "[",
            '{"name": "get_weather", "arguments": {"city": "#"}}',
            "{'name': 'exec', 'arguments': {'command': '#'}}",
            '{"name": "',
            ", ",
            "]",
            "get_weather",
            "[ARGS]",
            "[CALL_ID]",
            '{"city": "#"}',
            " # ",
            '"',
            "}",
            "</s>",
        ),
    ),
    "pythonic": Format(
        pythonic.GRAMMARS,
        recordings=[
            ("pythonic-single", [("get_weather", {"city": "Paris", "days": 3})], ""),
            (
                "pythonic-parallel",
                [
                    (
                        "get_weather",
                        {"city": "São Paulo", "options": {"a": True, "b": [1, -2.5, None]}, "tags": ["x", "y"]},
                    ),
                    ("get_time", {}),
                ],
                "",
            ),
            ("pythonic-tokens", [("exec", {"command": "ls | wc -l\n"})], "Checking now.  Then we see."),
            ("pythonic-lfm", [("get_weather", {"city": "Kyōto"})], "I asked for it."),
        ],
        fragments=(
            "[",
            'get_weather(city="#")',
            "exec(command='#'",
            ")",
            ", ",
            "]",
            "<|python_start|>",
            "<|python_end|>",
            " # ",
            "'",
            "\\",
        ),
    ),
    "qwen": Format(
        (qwen.IN_TAG, *qwen.GRAMMARS),
        recordings=[
            ("qwen-single", [("get_weather", {"city": "Paris", "days": 3})], ""),
            (
                "qwen-parallel",
                [("get_weather", {"city": "Zürich"}), ("get_weather", {"city": "東京 🗼", "detailed": True})],
                "I will look at both places.\n\n\n\n\nThat is all.",
            ),
            (
                "qwen-bare",
                [("exec", {"command": 'grep -rn "a < b" . \\\n  | head -5'})],
                "Let me see what is there.\n",
            ),
            (
                "qwen-nested",
                [
                    (
                        "get_weather",
                        {
                            "city": "Oslo",
                            "options": {"wind": {"unit": "m/s", "gusts": [1, 2.5]}, "sea": None},
                            "tags": ["coast", "it's cold"],
                        },
                    )
                ],
                "",
            ),
            ("qwen-empty", [("get_time", {})], ""),
            ("llama-function", [("get_weather", {"city": "Lima", "options": {"wind": True}})], "Let me check.\n"),
        ],
        prose=[
            "<function=get_weather> is what Qwen writes before <parameter=city>.",
            "<tool_call> is a tag.",
            "<tool_call>\n<function=launch_rocket>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>",
            "<function=get_weather",
            "<function=" + "x" * 300,
            "Write <function=get_weather><parameter=city>Rome</parameter></function> to call it.",
        ],
        fragments=(
            "<tool_call>\n",
            "<function=get_weather>",
            "<function=exec>{",
            "<function=nobody>",
            "<parameter=city>\n#",
            "<parameter=days>",
            "\n",
            "\n</parameter>\n",
            "</function>",
            "</tool_call>",
            '"command": "#"}',
            "7",
            " # ",
            "<",
        ),
    ),
}


@pytest.mark.parametrize(
    ("grammars", "recording"), [(one.grammars, recording) for one in FORMATS.values() for recording in one.recordings]
)
def test_recordings_give_their_calls_however_they_are_cut(
    grammars: Sequence[Grammar], recording: tuple[str, list[object], str]
) -> None:
    name, expected, text = recording
    pieces = recorded(grammars, name)
    assert (calls(pieces), words(pieces), broken(pieces)) == (expected, text, [])


@pytest.mark.parametrize("is_instructed", [True, False])
@pytest.mark.parametrize(("grammars", "text"), [(one.grammars, text) for one in FORMATS.values() for text in one.prose])
def test_prose_about_a_format_is_no_call(grammars: Sequence[Grammar], text: str, is_instructed: bool) -> None:
    check_prose(grammars, text, is_instructed=is_instructed)


@pytest.mark.parametrize("name", [name for name, one in FORMATS.items() if one.fragments])
@given(data=st.data())
def test_cutting_does_not_matter(name: str, data: st.DataObject) -> None:
    text, cuts = data.draw(texts(*FORMATS[name].fragments)), data.draw(CUTS)
    check_cut(FORMATS[name].grammars, text, cuts)
    check_cut(FORMATS[name].grammars, text, cuts, Tools(is_instructed=True))
