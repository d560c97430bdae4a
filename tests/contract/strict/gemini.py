"""What Gemini's API rejects in a generateContent request, with its own messages."""

from __future__ import annotations

import re
from typing import Any

from tests.contract.strict.refusals import Refused, names

_TOP = names(
    "contents systemInstruction tools toolConfig generationConfig safetySettings cachedContent labels store serviceTier model"
)
_DATA = names(
    "text inlineData fileData functionCall functionResponse executableCode codeExecutionResult toolCall toolResponse"
)
_BESIDE = names("thought thoughtSignature videoMetadata mediaResolution partMetadata")
_CALL = names("id name args")
_RESPONSE = names("id name response parts scheduling willContinue")
_BLOB = names("mimeType data displayName")
_DECLARATION = names("name description parameters parametersJsonSchema response responseJsonSchema behavior")
_CONFIG = names(
    "temperature topP topK candidateCount maxOutputTokens stopSequences seed presencePenalty frequencyPenalty "
    "responseLogprobs logprobs responseMimeType responseSchema responseJsonSchema thinkingConfig responseModalities"
)
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}\Z")
_MODES = ("AUTO", "ANY", "NONE", "VALIDATED")


def check(body: dict[str, Any], *, is_own: bool = False) -> None:
    """Raises Refused. is_own: from a client of this dialect, whose unknown members are its own matter."""
    body = _present(body)
    if not is_own:
        _known(body, _TOP, "")
    contents = body.get("contents")
    if not isinstance(contents, list) or not contents:
        raise Refused("* GenerateContentRequest.contents: contents is not specified", "contents")
    contents = [_listed(content) for content in contents]
    for index, content in enumerate(contents):
        _content(content, f"contents[{index}]")
    _turns(contents)
    if "parts" in (body.get("systemInstruction") or ()):  # other forms are the SDK's
        _content({"role": "user", **body["systemInstruction"]}, "system_instruction")
    declared = _tools(body.get("tools"))
    _tool_config(body.get("toolConfig"), declared)
    config = body.get("generationConfig", {})
    if not is_own:
        _known(config, _CONFIG, "generation_config")
    if not 0 <= config.get("temperature", 1) <= 2:
        raise Refused("temperature must be in the range [0.0, 2.0].", "generation_config.temperature")


def _present(value: Any) -> Any:
    """In the JSON of protocol buffers null is the same as nothing, and a content without a role is the user's."""
    if isinstance(value, list):
        return [_present(item) for item in value]
    if not isinstance(value, dict):
        return value
    found = {name: _present(item) for name, item in value.items() if item is not None}
    is_old = found.get("role") == "function"  # from the first version of the API
    if "parts" in found and (not found.get("role") or is_old) and "response" not in found:
        found["role"] = "user"
    return found


def _listed(content: dict[str, Any]) -> dict[str, Any]:
    """The API accepts one part instead of a list, and a string instead of a part."""
    parts = content.get("parts")
    parts = [parts] if isinstance(parts, str | dict) else parts
    if not isinstance(parts, list):
        return content
    return {**content, "parts": [{"text": part} if isinstance(part, str) else part for part in parts]}


def _known(value: dict[str, Any], known: frozenset[str], where: str) -> None:
    for name in value:
        if name not in known:
            place = f" at '{where}'" if where else ""
            raise Refused(f'Invalid JSON payload received. Unknown name "{name}"{place}: Cannot find field.', where)


def _content(content: Any, where: str) -> None:
    if content.get("role") not in ("user", "model"):
        raise Refused("Please use a valid role: user, model.", where)
    parts = content.get("parts")
    if not isinstance(parts, list) or not parts:
        raise Refused(f"* GenerateContentRequest.{where}.parts: contents.parts must not be empty.", where)
    for index, part in enumerate(parts):
        _part(part, f"{where}.parts[{index}]", content["role"])


def _part(part: dict[str, Any], where: str, role: str) -> None:
    _known(part, _DATA | _BESIDE, where)
    data = [name for name in part if name in _DATA]
    if len(data) != 1:
        raise Refused(
            f"* GenerateContentRequest.{where}.data: required oneof field 'data' must have one initialized field", where
        )
    match data[0]:
        case "text":
            if not isinstance(part["text"], str):
                raise Refused(f"Invalid value at '{where}.text' (TYPE_STRING), {part['text']!r}", where)
        case "inlineData":
            _known(part["inlineData"], _BLOB, where)
            if not part["inlineData"].get("mimeType") or not part["inlineData"].get("data"):
                raise Refused(f"* {where}.inline_data: Unsupported MIME type or no data", where)
        case "functionCall":
            _call(part["functionCall"], where, role)
        case "functionResponse":
            _response(part["functionResponse"], where, role)


def _call(call: dict[str, Any], where: str, role: str) -> None:
    _known(call, _CALL, where)
    if role != "model":
        raise Refused("Please ensure that function call is only in a turn with role model.", where)
    _name(call.get("name"), where)
    if not isinstance(call.get("args", {}), dict):
        raise Refused(
            f"Invalid value at '{where}.function_call.args' (type.googleapis.com/google.protobuf.Struct)", where
        )


def _response(response: dict[str, Any], where: str, role: str) -> None:
    _known(response, _RESPONSE, where)
    if role != "user":
        raise Refused("Please ensure that function response is only in a turn with role user.", where)
    _name(response.get("name"), where)
    if not isinstance(response.get("response"), dict):
        raise Refused(f"Invalid value at '{where}.function_response.response' (google.protobuf.Struct)", where)


def _name(name: Any, where: str) -> None:
    if not name:
        raise Refused(f"* GenerateContentRequest.{where}.name: Name cannot be empty.", where)
    if not isinstance(name, str) or not _NAME.match(name):
        raise Refused("Invalid function name. Must start with a letter or an underscore.", where)


def _turns(contents: list[dict[str, Any]]) -> None:
    """Calls follow a turn of the user, and their results, all of them and nothing else, follow them at once."""
    merged: list[tuple[str, list[dict[str, Any]]]] = []
    for content in contents:
        if merged and merged[-1][0] == content["role"]:
            merged[-1][1].extend(content["parts"])
        else:
            merged.append((content["role"], list(content["parts"])))
    calls: list[dict[str, Any]] = []
    for number, (_, parts) in enumerate(merged):
        results = [part["functionResponse"] for part in parts if "functionResponse" in part]
        if results and not calls:
            raise Refused("Please ensure that function response turn comes immediately after a function call turn.")
        if len(results) != len(calls):
            raise Refused(
                "Please ensure that the number of function response parts is equal to the number of function call parts "
                "of the function call turn."
            )
        _pairs(calls, results)
        if results and any("functionResponse" not in part for part in parts[: len(results)]):
            raise Refused("Please ensure that function response parts come first in their turn.")
        calls = [part["functionCall"] for part in parts if "functionCall" in part]
        if calls and number == 0:
            raise Refused(
                "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
            )
    if calls:
        raise Refused(
            "Please ensure that the number of function response parts is equal to the number of function call parts."
        )


def _pairs(calls: list[dict[str, Any]], results: list[dict[str, Any]]) -> None:
    ids = {call["id"] for call in calls if "id" in call}
    for call, result in zip(calls, results, strict=True):
        if call["name"] != result["name"]:
            raise Refused(f"The function response {result['name']} does not match the function call {call['name']}.")
        if result.get("id") in ids and call.get("id") != result["id"]:
            raise Refused(f"The id {result['id']} of the function response does not match the function call.")


def _tools(tools: Any) -> set[str]:
    if tools is None:
        return set()
    found: list[str] = []
    for index, tool in enumerate(tools):
        for declaration in tool.get("functionDeclarations", ()):
            where = f"tools[{index}].function_declarations"
            _known(declaration, _DECLARATION, where)
            _name(declaration.get("name"), where)
            if "parameters" in declaration and "parametersJsonSchema" in declaration:
                raise Refused("parameters and parameters_json_schema are mutually exclusive.", where)
            found.append(declaration["name"])
    for name in found:
        if found.count(name) > 1:
            raise Refused(f"Duplicate function declaration found: {name}", "tools")
    return set(found)


def _tool_config(config: Any, declared: set[str]) -> None:
    calling = (config or {}).get("functionCallingConfig")
    if calling is None:
        return
    where = "tool_config.function_calling_config"
    if not declared:
        raise Refused("Function calling config is set without function_declarations.", where)
    mode, allowed = calling.get("mode", "AUTO"), calling.get("allowedFunctionNames", [])
    if mode not in _MODES:
        raise Refused(f"Invalid value at '{where}.mode', \"{mode}\"", where)
    if allowed and mode not in ("ANY", "VALIDATED"):
        raise Refused("Allowed function names should only be set when function calling mode is ANY.", where)
    for name in allowed:
        if name not in declared:
            raise Refused(f"{where}.allowed_function_names contains {name}, which is not declared.", where)
