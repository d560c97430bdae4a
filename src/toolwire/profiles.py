"""Quirks of back ends, as data, so that no code compares names of back ends."""

from __future__ import annotations

import re
from typing import Literal
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


class IdRule(Struct, frozen=True, kw_only=True):
    """Which call ids a back end accepts; 0 means no known limit."""

    letters: Literal["any", "word", "base62"] = "any"  # word: letters, digits, _ and -
    longest: int = 0
    length: int = 0  # the exact number of characters
    is_numbered: bool = False  # functions.NAME:INDEX, counted over the whole conversation
    preserved: str = ""  # ids that contain this carry data for the back end and are never changed


class SchemaRules(Struct, frozen=True, kw_only=True):
    """What a back end requires of tool schemas."""

    needs_properties: bool = False  # H066: an object without properties is refused
    is_strict: bool = False  # H065: everything required, nothing else allowed
    has_root_unions: bool = True  # H064
    is_subset: bool = False  # H060-H062, H067, H069, H070: few keywords, no references


ANY_SCHEMAS = SchemaRules()
OPENAI_SCHEMAS = SchemaRules(needs_properties=True)
STRICT_SCHEMAS = SchemaRules(needs_properties=True, is_strict=True)
ANTHROPIC_SCHEMAS = SchemaRules(has_root_unions=False)
GEMINI_SCHEMAS = SchemaRules(is_subset=True, has_root_unions=False)


class Remedy(Struct, frozen=True, kw_only=True):
    """How to change a request that the back end refused with a known message, before one retry.

    change: "reasoning" removes earlier reasoning, "proof" the request for its proofs. "roles" moves instructions to the start, later ones
    become notes. "texts" replaces null by an empty text. "binding" lets the back end drop reasoning whose conversation has changed. "choice" leaves
    the choice among the tools to the model.
    """

    pattern: str  # of the error message, ignoring case
    change: Literal["reasoning", "proof", "roles", "texts", "binding", "choice"]
    why: str
    feature: tuple[str, str] = ("", "")  # a header, and the feature that the changed request must name in it
    statuses: frozenset[int] = frozenset({400})


# Only for conditions that only the back end knows: proofs of reasoning are valid for one account, stored items for one server, and what a
# server's template accepts is unknown before it refuses.
REMEDIES = (
    Remedy(
        pattern=r"block is bound to a different conversation",
        change="binding",
        why="the conversation before it has changed, and the back end drops it",
        feature=("anthropic-beta", "thinking-binding-controls-2026-08-01"),
    ),
    Remedy(
        pattern=r"tool_choice.{0,80}(?:not supported|not available|not allowed|cannot be)",
        change="choice",
        why="the model accepts no forced calls",
    ),
    Remedy(
        pattern=r"encrypted[_ ]content.{0,300}(?:not issued|not be verified|not be decrypted|did not match|invalid)"
        r"|invalid_encrypted_content",
        change="reasoning",
        why="it belongs to another account, and this one refused it",
    ),
    Remedy(
        pattern=r"item with id .{0,3}rs_\w{0,200}.{0,3} not found",
        change="reasoning",
        why="the back end no longer has it, or another one does",
        statuses=frozenset({400, 404}),
    ),
    Remedy(
        pattern=r"invalid .{0,3}signature.{0,3} in .{0,3}thinking|thinking.{0,80} cannot be modified"
        r"|thinking\.signature|expected .{0,3}thinking.{0,30} found",
        change="reasoning",
        why="the back end refused its signature",
    ),
    Remedy(
        pattern=r"thought[_ ]?signature.{0,80}(?:not valid|invalid|corrupted|missing)"
        r"|(?:missing a|corrupted|invalid) .{0,3}thought[_ ]?signature",
        change="reasoning",
        why="the back end refused the signature of a call, or missed one",
    ),
    Remedy(
        pattern=r"encrypted content is not supported",
        change="proof",
        why="the model has no proofs of its reasoning",
    ),
    Remedy(
        pattern=r"unknown variant .{0,3}developer|developer.{0,3} is not one of|unexpected message role"
        r"|system message must be at the beginning|no user query found",
        change="roles",
        why="the back end accepts instructions only at the start, and only in the plain roles",
        statuses=frozenset({400, 422, 500}),
    ),
    Remedy(
        pattern=r"cannot subscript null|not .{0,3}NoneType|'NoneType' object",
        change="texts",
        why="the back end requires text in an empty message",
        statuses=frozenset({400, 500}),
    ),
)

CHAT_IDS = IdRule(longest=40, preserved="__thought__")
OPENAI_IDS = IdRule(longest=40)
RESPONSES_IDS = IdRule(longest=64)
MESSAGES_IDS = IdRule(letters="word", longest=64)
MISTRAL_IDS = IdRule(letters="base62", length=9)
KIMI_IDS = IdRule(is_numbered=True)


class Profile(Struct, frozen=True, kw_only=True):
    """The defaults are the plain form of each dialect, which most of its servers accept."""

    name: str = "plain"
    max_tokens_field: str = "max_tokens"
    has_developer_role: bool = False
    asks_for_usage: bool = True
    reasoning_field: str = ""  # the member for earlier reasoning; "" if the back end refuses it
    has_effort: bool = True
    result_content: Literal["text", "parts"] = "text"
    default_max_tokens: int = 16384
    is_gateway: bool = False  # another toolwire, which counts agent tasks that reach their limit
    api_version: str = ""
    key_header: Literal["authorization", "x-api-key", "x-goog-api-key"] = "authorization"
    oauth_beta: str = ""  # the beta feature for tokens instead of keys
    bearer_from_version: str = ""  # api versions from this one on accept the key as a Bearer token
    has_sampling_until: str = ""  # api versions from this one on refuse temperature, top_p and top_k
    has_system_messages: bool = False  # at any position; many templates accept one, at the start (H112)
    adaptive_models: str = r"claude-[a-z]+-(?:4[-.][6-9]|[5-9]|[1-9]\d)(?!\d)"  # accept an effort, no thinking budget
    reasoning_models: str = ""  # models that always think
    level_models: str = r"gemini-(?:[3-9]|[1-9]\d)"  # accept a thinking level, the others a budget
    plain_models: str = r"gemini-(?:1\.|2\.0)|gemma"  # do not think, and refuse both
    signing_models: str = ""  # sign calls, and refuse a turn whose first call is unsigned (H074)
    keeps_state: bool = False  # stores answers by id, as its dialect defines
    has_compaction: bool = False  # compacts conversations, as its dialect defines
    tool_kinds: frozenset[str] = frozenset()  # tools of its dialect that it accepts beside functions
    name_length: int = 64  # of a tool's name, in letters, digits, _ and -
    ids: IdRule = IdRule()
    has_call_ids: bool = False  # accepts call ids in a dialect that identifies calls by order
    has_json_schemas: bool = True  # accepts JSON Schema in a dialect with a schema format of its own
    schemas: SchemaRules = ANY_SCHEMAS
    strict_schemas: SchemaRules | None = None  # for strict tools, if it supports them
    is_formal: bool = False  # a user message must come first, and the last text must not end in whitespace
    has_text_failures: bool = True  # failed results contain only text
    signs_thoughts: bool = False  # its dialect has proofs of reasoning, and it may require them
    needs_tools: bool = False  # refuses earlier calls in a request without tools (H089)
    max_tools: int = 0  # per request (H147); 0 means no known limit
    search_models: str = ""  # have a tool search of their own
    has_tool_choice: bool = True  # else the prompt asks for required calls, with a retry
    unforced_models: str = ""  # refuse a forced call: the model is reminded if it makes none
    bound_models: str = ""  # refuse signed reasoning if anything before it has changed
    writes_calls: bool = False  # its server may return calls as text (H117, H120, H123, H128)
    has_output_schemas: bool | None = (
        False  # constrains its output to a JSON Schema; None: unknown, so it is tried once
    )
    has_null_content: bool = False  # in assistant messages with only calls; templates require text (H111)
    remedies: tuple[Remedy, ...] = REMEDIES
    transient_errors: str = r"error parsing tool call"  # errors of the model that a retry may avoid (H113)
    has_files: bool = False  # accepts files other than images
    image_types: frozenset[str] = _IMAGES
    # 0 means no known limit; limits of one medium count bytes before base64.
    max_image_bytes: int = 0
    max_file_bytes: int = 0
    max_images: int = 0
    max_request_bytes: int = 0
    refused: frozenset[str] = frozenset()  # members of a request that it answers with an error
    # Members with the same meaning in Chat Completions and Responses, accepted from clients of the other dialect.
    shared_members: frozenset[str] = frozenset()

    def is_unforced(self, model: str) -> bool:
        return bool(self.unforced_models) and re.search(self.unforced_models, model) is not None

    def has_tool_search(self, model: str) -> bool:
        return bool(self.search_models) and re.search(self.search_models, model) is not None

    def is_bound(self, model: str) -> bool:
        return bool(self.bound_models) and re.search(self.bound_models, model) is not None


_HOSTED = frozenset({"hosted"})  # many servers have some of their own, and clients that use them know the server
# declared: tools that a message declares for the rest of the conversation. programs: tools that only programs of the model may call.
ALL_KINDS = frozenset({"custom", "namespace", "typed", "hosted", "deferred", "declared", "programs"})

# Without metadata, which OpenAI's Chat Completions refuses beside store = false.
_OPENAI_MEMBERS = frozenset(
    ["prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "safety_identifier", "service_tier"]
)

PLAIN = Profile()  # for back ends in this process
PLAIN_CHAT = Profile(
    name="chat",
    tool_kinds=_HOSTED,
    ids=CHAT_IDS,
    schemas=OPENAI_SCHEMAS,
    writes_calls=True,
    has_output_schemas=None,
)
OPENAI_CHAT = Profile(
    name="openai",
    max_tokens_field="max_completion_tokens",
    has_developer_role=True,
    has_null_content=True,
    has_system_messages=True,
    result_content="parts",
    tool_kinds=frozenset({"custom", "hosted"}),
    max_tools=128,
    ids=OPENAI_IDS,
    schemas=OPENAI_SCHEMAS,
    strict_schemas=STRICT_SCHEMAS,
    has_output_schemas=True,
    has_files=True,
    max_file_bytes=50_000_000,
    max_images=1500,
    shared_members=_OPENAI_MEMBERS,
)
_HOSTED_CHAT = replace(PLAIN_CHAT, has_null_content=True, has_system_messages=True)  # without chat templates
DEEPSEEK = replace(_HOSTED_CHAT, name="deepseek", reasoning_field="reasoning_content", has_output_schemas=False)
MISTRAL = replace(PLAIN_CHAT, name="mistral", ids=MISTRAL_IDS, has_null_content=True)
KIMI = replace(
    _HOSTED_CHAT,
    name="kimi",
    ids=KIMI_IDS,
    reasoning_field="reasoning_content",
    tool_kinds=_HOSTED | {"declared"},  # from K3 on
)
OPENROUTER = replace(_HOSTED_CHAT, name="openrouter", has_files=True)
# docs/providers.md lists the sources of these settings; unknown properties have the plain form.
AZURE = replace(
    PLAIN_CHAT,
    name="azure",
    writes_calls=False,
    max_tokens_field="max_completion_tokens",
    has_null_content=True,
    max_tools=128,
    ids=OPENAI_IDS,
)
GROQ = replace(
    PLAIN_CHAT,
    name="groq",
    max_tokens_field="max_completion_tokens",
    has_null_content=True,
    max_tools=128,
    refused=frozenset({"logprobs", "top_logprobs", "logit_bias", "n"}),
)
CEREBRAS = replace(
    PLAIN_CHAT,
    name="cerebras",
    max_tokens_field="max_completion_tokens",
    refused=frozenset({"frequency_penalty", "presence_penalty", "logit_bias", "parallel_tool_calls", "service_tier"}),
)
XAI = replace(PLAIN_CHAT, name="xai", max_tokens_field="max_completion_tokens", has_system_messages=True)
FIREWORKS = replace(PLAIN_CHAT, name="fireworks", reasoning_field="reasoning_content")
TOGETHER = replace(PLAIN_CHAT, name="together")
OLLAMA = replace(
    PLAIN_CHAT,
    name="ollama",
    reasoning_field="reasoning",
    has_output_schemas=True,
    image_types=frozenset({"image/png", "image/jpeg", "image/webp"}),
)
VLLM = replace(PLAIN_CHAT, name="vllm", reasoning_field="reasoning", has_output_schemas=True)
SGLANG = replace(PLAIN_CHAT, name="sglang", reasoning_field="reasoning_content", has_output_schemas=True)
LLAMA_CPP = replace(PLAIN_CHAT, name="llamacpp", reasoning_field="reasoning_content", has_output_schemas=True)
LM_STUDIO = replace(PLAIN_CHAT, name="lmstudio", has_output_schemas=True)
RESPONSES = Profile(
    name="responses",
    writes_calls=True,
    has_output_schemas=None,
    has_developer_role=True,
    result_content="parts",
    tool_kinds=ALL_KINDS,
    ids=RESPONSES_IDS,
    schemas=OPENAI_SCHEMAS,
    has_files=True,
    shared_members=frozenset({"metadata", "prompt_cache_key", "safety_identifier", "service_tier"}),
)
OPENAI_RESPONSES = replace(
    RESPONSES,
    name="openai-responses",
    writes_calls=False,
    has_output_schemas=True,
    reasoning_models=r"o\d|gpt-[5-9]|codex",
    strict_schemas=STRICT_SCHEMAS,
    keeps_state=True,
    has_compaction=True,
    search_models=r"gpt-(?:5\.[4-9]|[6-9]|[1-9]\d)",
    max_tools=128,
    max_file_bytes=50_000_000,
    max_images=1500,
    shared_members=_OPENAI_MEMBERS | {"metadata"},
)
OPENROUTER_RESPONSES = replace(RESPONSES, name="openrouter-responses", tool_kinds=_HOSTED)
# A program, so not found by host. Names leave room for a prefix that one of its tiers adds.
CODEX = replace(
    RESPONSES,
    name="codex",
    has_text_failures=False,
    has_tool_choice=False,
    writes_calls=False,
    has_output_schemas=False,
    tool_kinds=frozenset(),
    has_files=False,
    name_length=55,
)
# Names leave room for the prefix that the service adds; the model may be of any provider.
CURSOR = Profile(
    name="cursor",
    has_text_failures=False,
    has_tool_choice=False,
    tool_kinds=frozenset(),
    name_length=57,
    ids=MESSAGES_IDS,
    schemas=SchemaRules(needs_properties=True, has_root_unions=False),
    result_content="parts",
    has_files=False,
    writes_calls=False,
)
# The model may be of any provider.
VSCODE = Profile(
    name="vscode",
    max_tools=128,
    has_tool_choice=False,
    tool_kinds=frozenset(),
    ids=IdRule(letters="word", longest=40),
    schemas=SchemaRules(needs_properties=True, has_root_unions=False),
    result_content="parts",
    has_files=False,
    writes_calls=False,
    is_formal=True,
)
_FABLE_5_1 = r"claude-(?:fable|mythos)-(?:5[-.][1-9]|[6-9]|[1-9]\d)(?!\d)"
ANTHROPIC = Profile(
    name="anthropic",
    unforced_models=_FABLE_5_1 + r"|claude-opus-(?:5[-.][5-9]|[6-9]|[1-9]\d)(?!\d)",
    bound_models=_FABLE_5_1 + r"|claude-(?:opus|sonnet|haiku)-(?:5[-.][5-9]|[6-9]|[1-9]\d)(?!\d)",
    writes_calls=True,
    has_output_schemas=None,  # its newer models
    api_version="2023-06-01",
    key_header="x-api-key",
    oauth_beta="oauth-2025-04-20",
    bearer_from_version="2026-10-21",
    has_sampling_until="2026-10-21",
    result_content="parts",
    tool_kinds=ALL_KINDS,
    name_length=128,
    ids=MESSAGES_IDS,
    schemas=ANTHROPIC_SCHEMAS,
    is_formal=True,
    signs_thoughts=True,
    needs_tools=True,
    has_files=True,
)
TOOLWIRE = replace(ANTHROPIC, name="anthropic-toolwire", is_gateway=True)
ANTHROPIC_API = replace(
    ANTHROPIC,
    name="anthropic-api",
    writes_calls=False,
    keeps_state=True,
    has_compaction=True,
    search_models=r"claude-(?:opus|sonnet)-4[-.][5-9]|claude-[a-z]+-(?:[5-9]|[1-9]\d)(?!\d)",
    max_image_bytes=7_864_320,  # 10 MiB as base64; it was half of that until spring 2026
    max_images=600,
    max_request_bytes=32 << 20,
)
ANTHROPIC_OAUTH = replace(ANTHROPIC_API, name="anthropic-oauth", key_header="authorization")
GEMINI = Profile(
    name="gemini",
    has_output_schemas=True,
    key_header="x-goog-api-key",
    tool_kinds=_HOSTED,
    is_formal=True,
    has_files=True,
    image_types=frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"}),
)
GEMINI_API = replace(
    GEMINI,
    name="gemini-api",
    signing_models=r"gemini-(?:[3-9]|[1-9]\d)",
    has_call_ids=True,
    max_request_bytes=100_000_000,
)
GEMINI_OAUTH = replace(GEMINI_API, name="gemini-oauth", key_header="authorization")
GEMINI_SUBSET = replace(
    GEMINI, name="gemini-subset", has_json_schemas=False, has_output_schemas=False, schemas=GEMINI_SCHEMAS
)

BY_NAME = {
    profile.name: profile
    for profile in (
        PLAIN_CHAT,
        OPENAI_CHAT,
        DEEPSEEK,
        MISTRAL,
        KIMI,
        OPENROUTER,
        AZURE,
        GROQ,
        CEREBRAS,
        XAI,
        FIREWORKS,
        TOGETHER,
        OLLAMA,
        VLLM,
        SGLANG,
        LLAMA_CPP,
        LM_STUDIO,
        RESPONSES,
        OPENAI_RESPONSES,
        OPENROUTER_RESPONSES,
        ANTHROPIC,
        TOOLWIRE,
        ANTHROPIC_API,
        ANTHROPIC_OAUTH,
        GEMINI,
        GEMINI_API,
        GEMINI_OAUTH,
        GEMINI_SUBSET,
    )
}
BY_KIND = {"openai-chat": PLAIN_CHAT, "openai-responses": RESPONSES, "anthropic": ANTHROPIC, "gemini": GEMINI}
BY_HOST = {
    ("openai-chat", "api.openai.com"): OPENAI_CHAT,
    ("openai-chat", "api.deepseek.com"): DEEPSEEK,
    ("openai-chat", "api.mistral.ai"): MISTRAL,
    ("openai-chat", "codestral.mistral.ai"): MISTRAL,
    ("openai-chat", "api.moonshot.ai"): KIMI,
    ("openai-chat", "api.moonshot.cn"): KIMI,
    ("openai-chat", "openrouter.ai"): OPENROUTER,
    ("openai-chat", ".openai.azure.com"): AZURE,  # with a leading dot: every host one level below
    ("openai-chat", "api.groq.com"): GROQ,
    ("openai-chat", "api.cerebras.ai"): CEREBRAS,
    ("openai-chat", "api.x.ai"): XAI,
    ("openai-chat", "api.fireworks.ai"): FIREWORKS,
    ("openai-chat", "api.together.xyz"): TOGETHER,
    ("openai-chat", "api.together.ai"): TOGETHER,
    ("openai-chat", "ollama.com"): OLLAMA,
    ("openai-responses", "api.openai.com"): OPENAI_RESPONSES,
    ("anthropic", "api.anthropic.com"): ANTHROPIC_API,
    ("openai-responses", "openrouter.ai"): OPENROUTER_RESPONSES,
    ("gemini", "generativelanguage.googleapis.com"): GEMINI_API,
}


def profile_for(kind: str, base_url: str, name: str = "") -> Profile:
    """By name if given, else by host, else the plain profile of the kind."""
    if name:
        return BY_NAME[name]
    host = urlsplit(base_url).hostname or ""
    names = (host, host[host.find(".") :] if "." in host else "")
    return next((BY_HOST[kind, name] for name in names if (kind, name) in BY_HOST), BY_KIND.get(kind, PLAIN_CHAT))
