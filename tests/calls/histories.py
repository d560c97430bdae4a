"""Broken histories in each dialect's own wire form: a sound one, as pieces, then spoiled, then packed as that dialect's clients do."""

from __future__ import annotations

import json
from random import Random
from typing import Any

DIALECTS = ("chat", "responses", "messages")
_SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
_SPEAKERS = {
    "reply": "assistant",
    "thought": "assistant",
    "call": "assistant",
    "search": "assistant",
    "found": "assistant",
}
_MALFORMED = ('{"path": "%s', "%s", '["%s"]', '"%s"', '{"a":1}{"b":"%s"}', "null // %s")


class Piece:
    """One thing in a history. mark is a word that must not get lost; is_apart: it begins a new message where it need not."""

    def __init__(self, kind: str, mark: str, **members: Any) -> None:
        self.kind = kind
        self.mark = mark
        self.text: str = members.get("text", f"say {mark}")
        self.id: str = members.get("id", "")
        self.tool: str = members.get("tool", "")
        self.call_kind: str = members.get("call_kind", "function")
        self.raw: str = members.get("raw", "")
        self.is_apart: bool = members.get("is_apart", False)
        self.has_image: bool = members.get("has_image", False)

    @property
    def role(self) -> str:
        return _SPEAKERS.get(self.kind, self.kind)

    def copy(self) -> Piece:
        other = Piece(self.kind, self.mark)
        other.__dict__.update(self.__dict__)
        return other


def broken(random: Random, dialect: str) -> tuple[bytes, list[str]]:
    """The body of a request, and the words that must arrive."""
    pieces = _sound(random, dialect)
    for _ in range(random.randint(1, 6)):
        _spoil(random, pieces)
    if not any(piece.kind != "system" for piece in pieces):
        pieces.append(Piece("user", "lonely"))
    marks = [piece.mark for piece in pieces if piece.text.strip() and piece.kind not in ("thought", "search", "found")]
    return json.dumps(_PACK[dialect](pieces)).encode(), marks


def sound(random: Random, dialect: str) -> bytes:
    """The body of a request with nothing wrong: results have images only in dialects that allow them."""
    pieces = _sound(random, dialect)
    if dialect == "chat":
        for piece in pieces:
            piece.has_image = False
    return json.dumps(_PACK[dialect](pieces)).encode()


def _sound(random: Random, dialect: str) -> list[Piece]:
    pieces: list[Piece] = []
    names = iter(f"mk{number}x" for number in range(10_000))
    if random.random() < 0.5:
        pieces.append(Piece("system", next(names)))
    pieces.append(Piece("user", next(names)))
    for turn in range(random.randint(1, 4)):
        pieces += _turn(random, dialect, turn, names)
        if random.random() < 0.3:
            pieces.append(Piece("system", next(names)))
        if random.random() < 0.6:
            pieces.append(Piece("user", next(names), is_apart=random.random() < 0.5))
    if random.random() < 0.7 or pieces[-1].role == "assistant":
        pieces.append(Piece("user", next(names)))
    return pieces


def _turn(random: Random, dialect: str, turn: int, names: Any) -> list[Piece]:
    pieces: list[Piece] = []
    if random.random() < 0.3:
        pieces.append(Piece("thought", next(names)))
    if random.random() < 0.5:
        pieces.append(Piece("reply", next(names)))
    if dialect == "messages" and random.random() < 0.2:
        server_id = f"srvtoolu_{turn}{random.randint(0, 9)}"
        pieces += [Piece("search", next(names), id=server_id), Piece("found", next(names), id=server_id)]
    calls = [_call(random, dialect, f"{turn}{number}", next(names)) for number in range(random.randint(0, 3))]
    if not calls:
        return [*pieces, Piece("reply", next(names))]
    results = [
        Piece("result", next(names), id=call.id, call_kind=call.call_kind, has_image=random.random() < 0.1)
        for call in calls
    ]
    return pieces + calls + results


def _call(random: Random, dialect: str, number: str, mark: str) -> Piece:
    ids = [f"call_{number}", f"toolu_{number}", f"functions.Bash:{number}", f"portkey-{number}-" + "f" * 70]
    kinds = {"chat": ["function", "custom"], "messages": ["function"]}.get(
        dialect, ["function", "function", "custom", "local_shell"]
    )
    kind = random.choice(kinds)
    tool = {"custom": "apply_patch", "local_shell": "local_shell"}.get(kind, random.choice(["read", "Bash"]))
    raw = mark if kind == "custom" else json.dumps({"path": mark})
    return Piece("call", mark, id=random.choice(ids), tool=tool, call_kind=kind, raw=raw)


def _spoil(random: Random, pieces: list[Piece]) -> None:
    if not pieces:
        return
    at, to = random.randrange(len(pieces)), random.randrange(len(pieces))
    match random.randrange(11):
        case 0:
            del pieces[at]
        case 1:
            pieces.insert(to, pieces[at].copy())
        case 2:
            pieces[at], pieces[to] = pieces[to], pieces[at]
        case 3:
            pieces.insert(to, pieces.pop(at))
        case 4:
            _share_id(random, pieces)
        case 5:
            del pieces[max(1, at) :]
        case 6:
            del pieces[: min(at, len(pieces) - 1)]
        case 7:
            _malform(random, pieces)
        case 8:
            pieces.insert(at, Piece(random.choice(["system", "user", "reply"]), f"put{at}x{to}"))
        case 9:
            pieces.insert(at, Piece(random.choice(["system", "user", "reply"]), "", text=random.choice(["", " \n"])))
        case _:
            pieces[at].is_apart = not pieces[at].is_apart


def _share_id(random: Random, pieces: list[Piece]) -> None:
    """One of them gets another's id, or the name of its tool (H050)."""
    named = [piece for piece in pieces if piece.id and piece.role != "search"]
    if named:
        one, other = random.choice(named), random.choice(named)
        if (one.kind in ("search", "found")) == (other.kind in ("search", "found")):
            one.id = random.choice([other.id, other.id, other.tool or "Bash", "foreign_1"])


def _malform(random: Random, pieces: list[Piece]) -> None:
    calls = [piece for piece in pieces if piece.kind == "call" and piece.call_kind == "function"]
    if calls:
        call = random.choice(calls)
        call.raw = random.choice(_MALFORMED) % call.mark


def _groups(pieces: list[Piece], role_of: Any) -> list[list[Piece]]:
    """Neighbours of one role, as one message, unless one is apart."""
    groups: list[list[Piece]] = []
    for piece in pieces:
        if groups and role_of(groups[-1][0]) == role_of(piece) and not piece.is_apart and role_of(piece) != "system":
            groups[-1].append(piece)
        else:
            groups.append([piece])
    return groups


def _chat(pieces: list[Piece]) -> Any:
    messages: list[Any] = []
    for group in _groups(pieces, lambda piece: piece.role if piece.role == "assistant" else id(piece)):
        first = group[0]
        if first.role == "assistant":
            messages.append(_chat_assistant(group))
        elif first.kind == "result":
            content: Any = first.text
            if first.has_image:
                content = [{"type": "text", "text": first.text}, {"type": "image_url", "image_url": {"url": _URL}}]
            messages.append({"role": "tool", "tool_call_id": first.id, "content": content})
        else:
            messages.append({"role": first.role, "content": first.text})
    tools = [{"type": "function", "function": {"name": name, "parameters": _SCHEMA}} for name in ("read", "Bash")]
    return {
        "model": "m",
        "messages": messages,
        "tools": [*tools, {"type": "custom", "custom": {"name": "apply_patch"}}],
    }


def _chat_assistant(group: list[Piece]) -> Any:
    texts = [piece.text for piece in group if piece.kind == "reply"]
    message: Any = {"role": "assistant", "content": "\n".join(texts) if texts else None}
    if thoughts := [piece.text for piece in group if piece.kind == "thought"]:
        message["reasoning_content"] = "\n".join(thoughts)
    if calls := [piece for piece in group if piece.kind == "call"]:
        message["tool_calls"] = [
            {"id": call.id, "type": "custom", "custom": {"name": call.tool, "input": call.raw}}
            if call.call_kind == "custom"
            else {"id": call.id, "type": "function", "function": {"name": call.tool, "arguments": call.raw}}
            for call in calls
        ]
    return message


def _responses(pieces: list[Piece]) -> Any:
    tools: list[Any] = [{"type": "function", "name": name, "parameters": _SCHEMA} for name in ("read", "Bash")]
    tools += [{"type": "custom", "name": "apply_patch"}, {"type": "local_shell"}]
    return {"model": "m", "store": False, "tools": tools, "input": [_item(piece) for piece in pieces]}


def _item(piece: Piece) -> Any:
    match piece.kind, piece.call_kind:
        case "call", "custom":
            return {"type": "custom_tool_call", "call_id": piece.id, "name": piece.tool, "input": piece.raw}
        case "call", "local_shell":
            action = {"type": "exec", "env": {}, "command": ["echo", piece.mark]}
            return {"type": "local_shell_call", "id": f"lsh_{piece.mark}", "call_id": piece.id, "action": action}
        case "call", _:
            return {"type": "function_call", "call_id": piece.id, "name": piece.tool, "arguments": piece.raw}
        case "result", kind:
            output: Any = piece.text
            if piece.has_image and kind == "function":
                output = [{"type": "input_text", "text": piece.text}, {"type": "input_image", "image_url": _URL}]
            name = {"function": "function_call", "custom": "custom_tool_call", "local_shell": "local_shell_call"}[kind]
            return {"type": f"{name}_output", "call_id": piece.id, "output": output}
        case "thought", _:
            return {"type": "reasoning", "id": f"rs_{piece.mark}", "summary": [], "encrypted_content": "gAAA"}
        case "reply", _:
            return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": piece.text}]}
        case _:
            role = "developer" if piece.kind == "system" else "user"
            return {"type": "message", "role": role, "content": [{"type": "input_text", "text": piece.text}]}


def _messages(pieces: list[Piece]) -> Any:
    messages: list[Any] = []
    for group in _groups(pieces, lambda piece: "user" if piece.kind == "result" else piece.role):
        role = "user" if group[0].kind == "result" else group[0].role
        messages.append({"role": role, "content": [_block(piece) for piece in group]})
    tools = [{"name": name, "input_schema": _SCHEMA} for name in ("read", "Bash")]
    return {"model": "m", "max_tokens": 100, "messages": messages, "tools": tools}


def _block(piece: Piece) -> Any:
    match piece.kind:
        case "call":  # the wire form has no malformed arguments
            return {"type": "tool_use", "id": piece.id, "name": piece.tool, "input": {"path": piece.mark}}
        case "result":
            content: Any = piece.text
            if piece.has_image:
                image = {"type": "image", "source": {"type": "url", "url": _URL}}
                content = [{"type": "text", "text": piece.text}, image]
            return {"type": "tool_result", "tool_use_id": piece.id, "content": content}
        case "thought":
            return {"type": "thinking", "thinking": piece.text, "signature": "EqQB"}
        case "search":
            return {"type": "server_tool_use", "id": piece.id, "name": "web_search", "input": {"query": "q"}}
        case "found":
            return {"type": "web_search_tool_result", "tool_use_id": piece.id, "content": []}
        case _:
            return {"type": "text", "text": piece.text}


_URL = "https://example.com/shot.png"
_PACK = {"chat": _chat, "responses": _responses, "messages": _messages}
