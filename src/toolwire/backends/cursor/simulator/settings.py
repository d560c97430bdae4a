"""How this simulator is set up: whom it knows, which models it has, how strict it is."""

from __future__ import annotations

from msgspec import Struct

API_KEY = "key_simulator"
TOKEN = "token_simulator"

MODELS = (
    "default",
    "composer-2",
    "claude-4.6-sonnet",
    "claude-4.6-opus",
    "gpt-5.4",
    "gpt-5.4-codex",
    "gemini-3-pro",
    "grok-5",
)


class Settings(Struct, frozen=True, kw_only=True):
    """The defaults are what is known of the real server; what is not known is the kinder way."""

    heartbeat: float = 1.0  # seconds, as it was seen on the real server
    api_keys: tuple[str, ...] = (API_KEY,)
    tokens: tuple[str, ...] = (TOKEN,)  # which never expire
    token_seconds: float = 3600.0  # how long a token lives that was given for an API key
    is_sign_in_barred: bool = False  # the exchange ends with sign_in_policy_violation
    models: tuple[str, ...] = MODELS
    knows_every_model: bool = False
    minimum_version: str = ""  # as in cli-2026.01.09
    needs_context: bool = False  # refuses runs whose first message has no request context, or an empty one
    has_precheck: bool = True  # asks before every call whether the tool is allowed
    needs_close: bool = False  # a result counts only when its stream is closed
    orders_appends: bool = False  # appends may overtake each other
    append_wait: float = 1.0  # seconds for the RunSSE of an append to appear
    is_enveloped: bool = False  # the list of models comes in an envelope
    parked_seconds: float = 0.05  # until a trouble of a parked run happens
    http2_config: int = 2
