"""The configuration as values: every key with its type and default."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta, Struct

from ..telemetry.prices import Price
from .secret import Secret

DEFAULT_PORT = 18741

Port: TypeAlias = Annotated[int, Meta(ge=1, le=65535, description="a whole number from 1 to 65535")]
InternalPort: TypeAlias = Annotated[
    int, Meta(ge=0, le=65535, description="a whole number from 0 (any free port) to 65535")
]
Count: TypeAlias = Annotated[int, Meta(ge=1, le=1_000_000, description="a whole number from 1 to 1000000")]
Days: TypeAlias = Annotated[int, Meta(ge=1, le=36500, description="a whole number of days from 1 to 36500")]
Results: TypeAlias = Annotated[int, Meta(ge=1, le=20, description="a whole number from 1 to 20")]
Retries: TypeAlias = Annotated[int, Meta(ge=0, le=10, description="a whole number from 0 to 10")]
Workers: TypeAlias = Annotated[int, Meta(ge=1, le=64, description="a whole number from 1 to 64")]
Pool: TypeAlias = Annotated[int, Meta(ge=1, le=200, description="a whole number from 1 to 200")]
Corrections: TypeAlias = Annotated[int, Meta(ge=0, le=20, description="a whole number from 0 to 20")]
Parked: TypeAlias = Annotated[
    int, Meta(ge=0, le=3600, description="a whole number of seconds from 0 (turns are not held open) to 3600")
]
Beats: TypeAlias = Annotated[int, Meta(ge=0, le=10_000, description="a whole number from 0 (never) to 10000")]
Limit: TypeAlias = Annotated[int, Meta(ge=0, le=1_000_000_000, description="a whole number, 0 for no limit")]
Connections: TypeAlias = Annotated[
    int, Meta(ge=0, le=1_000_000, description="a whole number from 1 to 1000000, or 0 for twice max_streams")
]
# Of the tools that a model gets at a time.
Budget: TypeAlias = Annotated[
    Annotated[int, Meta(ge=0, le=10_000)] | Annotated[str, Meta(pattern=r"^[1-9][0-9]{0,6}k? tokens$")],
    Meta(description='a number of tools from 1 to 10000, a number of tokens such as "20k tokens", or 0 for no budget'),
]
MostTools: TypeAlias = Annotated[
    Annotated[int, Meta(ge=0, le=10_000)] | None,
    Meta(description="a whole number from 1 to 10000, or 0 for no limit"),
]
ContextWindow: TypeAlias = Annotated[
    int, Meta(ge=1, le=1_000_000_000, description="a number of tokens from 1 to 1000000000")
]
LocalTool: TypeAlias = Literal["read", "list", "glob", "grep", "write", "delete", "shell"]
Guard: TypeAlias = Literal["off", "check", "repair", "retry"]
Approval: TypeAlias = Literal["auto", "allow", "ask", "deny"]
Grammar: TypeAlias = Literal["auto", "on", "off"]
Switch: TypeAlias = bool | Literal["auto"]
Seconds: TypeAlias = Annotated[float, Meta(gt=0, le=86400, description="a number of seconds above 0, at most 86400")]

Share: TypeAlias = Annotated[float, Meta(ge=0, le=1, description="a number from 0 to 1")]
Drain: TypeAlias = Annotated[float, Meta(ge=0, le=3600, description="a number of seconds from 0 to 3600")]


class ServerConfig(Struct, frozen=True, kw_only=True):
    host: str = "127.0.0.1"
    port: Port = DEFAULT_PORT
    keys: tuple[Secret, ...] = ()
    secrets: tuple[Secret, ...] = ()  # seal what clients store for the gateway; the first one seals, all of them open
    default: str = ""
    max_body_mb: Count = 64
    max_streams: Count = 2000
    max_connections: Connections = 0  # 0: twice max_streams
    max_head_kb: Count = 64
    max_headers: Count = 128
    head_seconds: Seconds = 30.0
    idle_seconds: Seconds = 75.0
    keep_alive_seconds: Seconds = 15.0
    shutdown_seconds: Seconds = 30.0
    drain_seconds: Drain = 0.0
    origins: tuple[str, ...] = ()
    websocket: bool = True  # Responses over WebSocket; false refuses the upgrade with 426
    log: Literal["info", "debug", "warning", "error", "trace"] = "info"
    log_format: Literal["text", "json"] = "text"
    trace_file: str = ""
    trace_max_mb: Count = 64


class BackendConfig(Struct, frozen=True, kw_only=True):
    """missing: which referenced secret does not exist; the back end then cannot answer."""

    name: str
    kind: str  # one of backends.registry.kinds()
    base_url: str = ""
    key: Secret = Secret()
    tools: Literal["auto", "native", "simulate"] = "auto"
    tool_kinds: Literal["auto", "all", "functions"] = "auto"
    tools_budget: Budget = 0
    max_tools: MostTools = None  # None: as the profile says
    tool_search: Literal["auto", "gateway", "off"] = "auto"
    tools_diet: bool = False
    max_result_tokens: Limit = 0
    guard: Guard = "repair"
    guards: dict[str, Guard] = {}  # by model name, with * as wildcard
    max_corrections: Corrections = 2
    policy: Literal["pass", "text", "error"] = "pass"
    unknown_tool: Literal["correct", "emit", "text", "error"] = "correct"
    grammar: Grammar = "auto"
    verbatim: Literal["auto", "never"] = "auto"
    state: Literal["auto", "upstream", "gateway"] = "auto"
    models: tuple[str, ...] = ()
    context_windows: dict[str, ContextWindow] = {}  # by model name, with * as wildcard
    headers: dict[str, str] = {}
    script: str = ""
    cassette: str = ""  # replay: the file
    match: Literal["exact", "conversation"] = "exact"
    timing: Literal["instant", "recorded"] = "instant"
    damage: tuple[str, ...] = ()
    command: tuple[str, ...] = ()  # codex: the command of its app-server, or its address
    config: dict[str, Any] = {}
    workers: Workers = 2
    tier: Literal["auto", "replay", "held", "mcp", "sentinel"] = "auto"  # "mcp" is read as "auto"
    keep_threads: bool = True
    built_in_tools: tuple[Literal["web_search", "view_image"], ...] = ()
    token: Secret = Secret()  # from here on for cursor; an access token instead of a key
    client_type: str = "cli"
    client_version: str = ""
    privacy: bool = True
    transport: Literal["auto", "run", "sse"] = "auto"
    workspace: str = ""
    local_tools: tuple[LocalTool, ...] = ()
    sandbox: Literal["required", "auto", "never"] = "required"  # for the shell of local_tools
    history: Literal["native", "flat"] = "native"
    request_context: Literal["first", "asked"] = "first"
    tool_schemas: Literal["value", "json", "both"] = "value"
    results: Literal["message", "resume"] = "message"
    agent_url: str = ""
    park_seconds: Parked = 600
    stall_heartbeats: Beats = 10
    stall_seconds: Beats = 12
    repeated_calls: Literal["tell", "answer"] = "tell"
    max_requests_per_minute: Limit = 120
    max_tokens_per_minute: Limit = 5_000_000
    profile: str = ""
    connect_timeout: Seconds = 10.0
    first_byte_timeout: Seconds = 600.0
    idle_timeout: Seconds = 300.0
    retries: Retries = 2
    missing: str = ""

    def __repr__(self) -> str:
        return f"BackendConfig({', '.join(f'{name}={value!r}' for name, value in self.__rich_repr__())})"

    @property
    def is_simulated(self) -> bool:
        """Whether tools are described in the prompt and calls are written as text."""
        return self.tools == "simulate" or self.tier == "sentinel"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Shows only the names of headers and of config, because their values may be secrets."""
        hidden = {"headers": list(self.headers), "config": list(self.config)}
        shown = {name: getattr(self, name) for name in self.__struct_fields__} | hidden
        return list(shown.items())


class StoreConfig(Struct, frozen=True, kw_only=True):
    """path: "" means default_store_path(). url: of PostgreSQL, with its password; "" for other kinds."""

    kind: Literal["sqlite", "memory", "postgres"] = "sqlite"
    path: str = ""
    url: Secret = Secret()
    connections: Pool = 8
    max_age_days: Days = 30
    max_mb: Count = 512
    reasoning: bool = True  # store reasoning that back ends require and clients drop


class FlowsConfig(Struct, frozen=True, kw_only=True):
    """Recording of requests for the inspector. enabled: auto records on a gateway without keys. path: a folder, "" for memory alone."""

    enabled: Switch = "auto"
    bodies: bool = True
    max_mb: Count = 64
    max_flows: Count = 10_000
    max_body_kb: Count = 1024
    max_age_days: Days = 7
    path: str = ""
    disk_mb: Count = 512
    file: str = ""  # a cassette that every flow is appended to


class ClusterConfig(Struct, frozen=True, kw_only=True):
    """Processes that forward requests to each other. host and port: of the internal listener; port 0 for any free one, otherwise each
    worker has the next. advertise: how other machines reach the host, "" for host."""

    secret: Secret = Secret()
    host: str = "127.0.0.1"
    port: InternalPort = 0
    advertise: str = ""
    is_own: bool = False  # the secret is known only to the workers of this gateway, until it stops


class TelemetryConfig(Struct, frozen=True, kw_only=True):
    """otlp_endpoint: of a collector, "" for no traces. content: export messages, too, which needs recorded flows."""

    otlp_endpoint: str = ""
    service_name: str = "toolwire"
    sample: Share = 1.0
    content: bool = False


class SearchConfig(Struct, frozen=True, kw_only=True):
    """Runs web searches of clients that expect the provider to do so. url: for searxng. command: a program."""

    kind: Literal["searxng", "command"]
    url: str = ""
    command: str = ""
    timeout: Seconds = 10.0
    results: Results = 8


class McpServerConfig(Struct, frozen=True, kw_only=True):
    """An MCP server whose tools the gateway offers to models and runs itself. Either command or url is set.

    models, keys, tools: patterns with * as wildcard. approval: for tools without an entry in approvals. max_calls: in one request.
    max_output: characters of one result. calls_per_minute: of one client key, 0 for no limit.
    """

    name: str
    command: tuple[str, ...] = ()
    url: str = ""
    env: dict[str, str] = {}
    headers: dict[str, str] = {}
    models: tuple[str, ...] = ("*",)
    keys: tuple[str, ...] = ("*",)
    tools: tuple[str, ...] = ("*",)
    approval: Approval = "auto"
    approvals: dict[str, Approval] = {}  # by name of the server's tool, with * as wildcard
    timeout: Seconds = 60.0
    start_timeout: Seconds = 30.0
    max_calls: Count = 20
    max_output: Count = 100_000
    calls_per_minute: Limit = 0

    def __repr__(self) -> str:
        return f"McpServerConfig({', '.join(f'{name}={value!r}' for name, value in self.__rich_repr__())})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Shows only the names of env and headers, because their values may be secrets."""
        hidden = {"env": list(self.env), "headers": list(self.headers)}
        shown = {name: getattr(self, name) for name in self.__struct_fields__} | hidden
        return list(shown.items())


GroupOrder: TypeAlias = Literal["listed", "quality"]
FALLBACK_REASONS = ("connect", "408", "409", "425", "429", "5xx", "empty", "stall")


class ModelGroup(Struct, frozen=True, kw_only=True):
    """Models of which one answers. weights: the share of conversations that each one gets, one weight per model; empty for the order of
    the list. fallback_on: the failures after which the next model gets the request."""

    models: tuple[str, ...]
    weights: tuple[float, ...] = ()
    order: GroupOrder = "listed"
    fallback_on: tuple[str, ...] = FALLBACK_REASONS
    stall_seconds: Seconds = 60.0


class Config(Struct, frozen=True, kw_only=True):
    """path: "" without a file. warnings: messages for the owner."""

    server: ServerConfig = ServerConfig()
    store: StoreConfig = StoreConfig()
    flows: FlowsConfig = FlowsConfig()
    cluster: ClusterConfig | None = None
    telemetry: TelemetryConfig = TelemetryConfig()
    search: SearchConfig | None = None
    mcp_servers: tuple[McpServerConfig, ...] = ()
    backends: tuple[BackendConfig, ...] = ()
    aliases: dict[str, str] = {}
    groups: dict[str, ModelGroup] = {}  # by name, which is also an alias of the first model
    prices: dict[str, Price] = {}  # by BACKEND/MODEL
    path: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def is_recorded(self) -> bool:
        """Whether requests are recorded for the inspector."""
        return not self.server.keys if self.flows.enabled == "auto" else self.flows.enabled
