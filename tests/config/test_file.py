"""toolwire.toml: what it may say, and how its mistakes are named."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from toolwire.config.file import (
    BackendConfig,
    ClusterConfig,
    Config,
    SearchConfig,
    ServerConfig,
    StoreConfig,
    default_store_path,
    is_loopback,
    load,
    secret_folder,
    url_fault,
    with_address,
    with_backends,
)
from toolwire.config.secret import Secret
from toolwire.errors import ConfigError

EXAMPLE = """
[server]
host = "127.0.0.1"
port = 18741
keys = ["env:TOOLWIRE_KEY"]
default = "openai"
[backends.openai]
kind = "openai-chat"
base_url = "https://api.openai.com/v1/"
key = "env:OPENAI_API_KEY"
tools = "auto"
guard = "repair"
verbatim = "auto"
models = ["gpt-5.5"]
[models]
"fast" = "openai/gpt-5.5"
"""
KEYS = {"TOOLWIRE_KEY": "tw-secret", "OPENAI_API_KEY": "sk-secret"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test runs where no configuration is."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "user"))
    return tmp_path


def loaded(text: str, environ: Mapping[str, str] = {}) -> Config:
    Path("toolwire.toml").write_text(text)
    return load(Path("toolwire.toml"), environ)


def refused(text: str, environ: Mapping[str, str] = {}) -> str:
    with pytest.raises(ConfigError) as caught:
        loaded(text, environ)
    return caught.value.sentence()


def backend(text: str, environ: Mapping[str, str] = {}) -> BackendConfig:
    return loaded(f"[backends.x]\n{text}", environ).backends[0]


def test_the_documented_example() -> None:
    config = loaded(EXAMPLE, KEYS)
    openai, demo = config.backends
    assert config.server == ServerConfig(keys=(Secret("tw-secret"),), default="openai")
    assert openai == BackendConfig(
        name="openai",
        kind="openai-chat",
        base_url="https://api.openai.com/v1",
        key=Secret("sk-secret"),
        models=("gpt-5.5",),
    )
    assert (demo.name, demo.kind) == ("demo", "demo")
    assert config.aliases == {"fast": "openai/gpt-5.5"}
    assert config.path == "toolwire.toml"
    assert config.warnings == ()


def test_an_empty_file_means_the_defaults() -> None:
    config = loaded("")
    assert config.server == ServerConfig()
    assert [each.name for each in config.backends] == ["demo"]


def test_a_file_may_begin_with_a_byte_order_mark() -> None:
    assert loaded("\ufeff[server]\nport = 1234\n").server.port == 1234


def test_every_setting_can_be_written() -> None:
    config = loaded("""
[server]
host = "localhost"
max_body_mb = 1
max_streams = 10
keep_alive_seconds = 5
shutdown_seconds = 0.5
origins = ["https://example.com", "app://obsidian.md", "http://localhost:3000"]
log = "debug"
log_format = "json"
[backends.a]
kind = "anthropic"
tools = "simulate"
guard = "retry"
guards = { "small-*" = "repair" }
max_corrections = 0
policy = "error"
verbatim = "never"
headers = { x-team = "blue" }
profile = "anthropic"
connect_timeout = 1
first_byte_timeout = 2.5
idle_timeout = 3
retries = 0
""")
    assert config.server.keep_alive_seconds == 5.0
    assert config.server.origins[1] == "app://obsidian.md"
    assert config.backends[0] == BackendConfig(
        name="a",
        kind="anthropic",
        base_url="https://api.anthropic.com",
        tools="simulate",
        guard="retry",
        guards={"small-*": "repair"},
        max_corrections=0,
        policy="error",
        verbatim="never",
        headers={"x-team": "blue"},
        profile="anthropic",
        connect_timeout=1.0,
        first_byte_timeout=2.5,
        idle_timeout=3.0,
        retries=0,
    )


def test_where_the_file_is_looked_for(folder: Path) -> None:
    assert load(None, {}).path == ""
    assert [each.name for each in load(None, {}).backends] == ["demo"]
    own = folder / "user" / "toolwire" / "toolwire.toml"
    own.parent.mkdir(parents=True)
    own.write_text("[server]\nport = 1\n")
    assert load(None, {}).path == str(own)
    Path("toolwire.toml").write_text("[server]\nport = 2\n")
    assert load(None, {}).path == "toolwire.toml"
    assert load(own, {}).server.port == 1


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_a_file_that_cannot_be_read(content: bytes | None) -> None:
    if content is not None:
        Path("mine.toml").write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        load(Path("mine.toml"), {})
    assert caught.value.where == "mine.toml"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            '[backends.openai]\nkey = "x"\nkind = "opena-chat"',
            'toolwire.toml, line 3, backends.openai.kind: found "opena-chat"; expected one of "anthropic", '
            '"codex", "cursor", "demo", "gemini", "openai-chat", "openai-responses", "replay", "scripted", "vscode"; did you mean "openai-chat"?',
        ),
        (
            '[backends.a]\nkind = "demo"\nguards = { "x-*" = "retyr" }',
            'toolwire.toml, line 3, backends.a.guards."x-*": found "retyr"; expected one of "off", "check", "repair", '
            '"retry"; did you mean "retry"?',
        ),
        (
            "[server]\nprot = 1",
            'toolwire.toml, line 2, server.prot: found the unknown key "prot"; expected one of "host", "port", "keys", '
            '"secrets", "default", "max_body_mb", "max_streams", "max_connections", "max_head_kb", "max_headers", "head_seconds", '
            '"idle_seconds", "keep_alive_seconds", "shutdown_seconds", "drain_seconds", "origins", "websocket", "log", "log_format", "trace_file", "trace_max_mb"; did you mean "port"?',
        ),
        (
            "[server]\nmax_connections = -1",
            "toolwire.toml, line 2, server.max_connections: found -1; expected a whole number from 1 to 1000000, or 0 for "
            "twice max_streams.",
        ),
        (
            "[server]\nport = 70000",
            "toolwire.toml, line 2, server.port: found 70000; expected a whole number from 1 to 65535.",
        ),
        (
            '[server]\nport = "80"',
            'toolwire.toml, line 2, server.port: found "80"; expected a whole number from 1 to 65535.',
        ),
        (
            "[server]\nport = true",
            "toolwire.toml, line 2, server.port: found true; expected a whole number from 1 to 65535.",
        ),
        (
            "[server]\nhost = 1979-05-27",
            "toolwire.toml, line 2, server.host: found a date or time; expected a string.",
        ),
        (
            "[server]\norigins = 'x'",
            'toolwire.toml, line 2, server.origins: found "x"; expected a list of strings.',
        ),
        (
            "[store]\nkind = 'sqlit'",
            'toolwire.toml, line 2, store.kind: found "sqlit"; expected one of "sqlite", "memory", "postgres"; did you mean "sqlite"?',
        ),
        (
            "[store]\nmax_mb = '1'",
            'toolwire.toml, line 2, store.max_mb: found "1"; expected a whole number from 1 to 1000000.',
        ),
        (
            "[backend.openai]",
            'toolwire.toml, line 1, backend: found the unknown key "backend"; expected one of "server", "store", "cluster", "telemetry", "flows", '
            '"search", "mcp", "backends", "models", "prices"; did you mean "backends"?',
        ),
        (
            "\n[[backends]]\nkind = 'demo'",
            "toolwire.toml, line 2, backends: found a list; expected a table: [backends.NAME].",
        ),
        (
            "[backends]\nopenai = 'x'",
            "toolwire.toml, line 2, backends.openai: found a string; expected a table: [backends.NAME].",
        ),
        ("server = 1", "toolwire.toml, line 1, server: found a number; expected a table: [server]."),
        (
            "[server]\ndefault = 'opnai'\n[backends.openai]\nkind = 'openai-chat'",
            'toolwire.toml, line 2, server.default: found "opnai"; expected one of "openai", "demo"; '
            'did you mean "openai"?',
        ),
        (
            "[models]\nfast = 1",
            'toolwire.toml, line 2, models.fast: found 1; expected a model such as "openai/gpt-5.5" for a name, or a list of models.',
        ),
        (
            "[models]\na = 'b'\nb = 'a'",
            'toolwire.toml, line 2, models.a: this alias refers to itself: "a" -> "b" -> "a".',
        ),
        (
            "[models]\na = 'b'\n'*-*' = 'demo/echo-tools'",
            'toolwire.toml, line 3, models."*-*": found the alias "*-*"; expected at most one * in it.',
        ),
        ("a = = 1", "toolwire.toml, line 1: this is not TOML: Invalid value. Correct that line and start again."),
    ],
)
def test_a_mistake_is_named_by_file_line_and_key(text: str, sentence: str) -> None:
    assert refused(text) == sentence


@pytest.mark.parametrize(
    "text",
    [
        "[server]\nport = 0",
        "[server]\nmax_streams = 0",
        "[server]\nkeep_alive_seconds = 0",
        "[server]\nkeep_alive_seconds = nan",
        "[server]\nkeep_alive_seconds = inf",
        "[server]\nlog = 'loud'",
        "[backends.a]\nkind = 'demo'\nmax_corrections = 21",
        "[backends.a]\nkind = 'demo'\nmax_corrections = -1",
        "[backends.a]\nkind = 'demo'\npolicy = 'drop'",
        "[backends.a]\nkind = 'demo'\nguards = 'retry'",
        "[backends.a]\nkind = 'demo'\nguards = { a = 1 }",
        "[server]\norigins = ['*']",
        "[server]\norigins = ['https://example.com/']",
        "[server]\nmax_body_mb = 999999999999999999999999",
        "[store]\nkind = 'redis'",
        "[store]\nmax_mb = 0",
        "[store]\nmax_mb = 1.5",
        "[store]\nmax_age_days = 0",
        "[store]\nmax_age_days = 36501",
        "[store]\npath = 1",
        "[store]\npath = 'a'\nkind = 'memory'",
        '[store]\npath = "a\\u0000b"',
        "[backends.x]\nkind = 3",
        "[backends.x]\nkind = 'demo'\nname = 'y'",
        "[backends.x]\nkind = 'demo'\nmissing = 'y'",
        "[backends.x]\nkind = 'demo'\nretries = -1",
        "[backends.x]\nkind = 'demo'\nscript = 'a.json'",
        "[backends.x]\nkind = 'anthropic'\nprofile = 'antropic'",
        "[backends.x]\nkind = 'anthropic'\nheaders = { 'a b' = 'x' }",
        "[backends.x]\nkind = 'anthropic'\nheaders = { a = 1 }",
        "[backends.'a/b']\nkind = 'demo'",
        "[backends.'']\nkind = 'demo'",
        "[models]\n'' = 'x'",
        "[models]\nx = ''",
    ],
)
def test_what_is_refused(text: str) -> None:
    assert refused(text).startswith("toolwire.toml, line ")


def test_a_back_end_needs_a_kind() -> None:
    assert refused("[backends.x]\nkey = 'k'").startswith("toolwire.toml, line 1, backends.x: kind is missing; expected")


def test_vs_code_defaults_to_guard_retry() -> None:
    """Arguments that are no JSON arrive from there as {}."""
    assert backend('kind = "vscode"').guard == "retry"
    assert backend('kind = "vscode"\nguard = "check"').guard == "check"
    assert refused('[backends.x]\nclient_type = "cli"\nkind = "vscode"').startswith(
        'toolwire.toml, line 2, backends.x.client_type: found client_type for kind "vscode"'
    )


def test_requests_of_vs_code_can_be_limited() -> None:
    assert backend('kind = "vscode"\nmax_requests_per_minute = 5').max_requests_per_minute == 5
    assert refused('[backends.x]\nkind = "codex"\nmax_requests_per_minute = 5').endswith(
        'found max_requests_per_minute for kind "codex"; expected it only for kind "cursor" or "vscode".'
    )
    assert 'only for kind "cursor".' in refused('[backends.x]\nkind = "vscode"\nmax_tokens_per_minute = 5')


def test_vs_code_is_the_default_where_it_was_written_or_nothing_else_was_found() -> None:
    found = BackendConfig(name="vscode", kind="vscode")
    other = BackendConfig(name="openai", kind="openai-chat")
    assert with_backends(Config(), (found,)).server.default == "vscode"
    assert with_backends(Config(), (other, found)).server.default == "openai"
    assert with_backends(Config(), (other, BackendConfig(name="codex", kind="codex"), found)).server.default == ""
    assert with_backends(Config(backends=(found,)), ()).server.default == "vscode"


def test_a_back_end_without_its_key_is_configured_as_missing() -> None:
    openai = backend('kind = "openai-chat"\nkey = "env:OPENAI_API_KEY"')
    assert not openai.key
    assert openai.missing == "OPENAI_API_KEY is not set"
    assert backend('kind = "openai-chat"').missing == ""


def test_the_first_secret_seals_and_none_is_shown() -> None:
    config = loaded("[server]\nsecrets = ['env:NEW', 'an-older-secret-here']", {"NEW": "n" * 20})
    assert [secret.reveal() for secret in config.server.secrets] == ["n" * 20, "an-older-secret-here"]
    assert "older" not in repr(config)


@pytest.mark.parametrize(
    ("text", "why"), [("'short'", "found a weak secret"), ("'env:NOT_SET'", "does not start without its secrets")]
)
def test_a_secret_that_is_weak_or_missing_is_refused_and_not_shown(text: str, why: str) -> None:
    message = refused(f"[server]\nsecrets = [{text}]")
    assert why in message
    assert "short" not in message


@pytest.mark.parametrize("keys", ['["env:NOT_SET"]', '["file:not-there"]', '[""]', '["a", "env:NOT_SET"]'])
def test_the_server_never_starts_open_by_accident(keys: str) -> None:
    assert refused(f"[server]\nkeys = {keys}").startswith("toolwire.toml, line 2, server.keys: ")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.168.1.2", "gateway.example"])
def test_an_address_others_can_reach_needs_keys(host: str) -> None:
    assert "no keys" in refused(f'[server]\nhost = "{host}"')
    assert loaded(f'[server]\nhost = "{host}"\nkeys = ["k"]').server.host == host


def test_secrets_come_from_files_and_inline_too(folder: Path) -> None:
    (folder / "key").write_text("sk-file\n")
    (folder / "key").chmod(0o644)
    config = loaded('[backends.a]\nkind="anthropic"\nkey="file:key"\n[backends.b]\nkind="anthropic"\nkey="sk-inline"')
    assert [each.key.reveal() for each in config.backends] == ["sk-file", "sk-inline", ""]
    assert len(config.warnings) == 1
    assert "chmod 600" in config.warnings[0]


def test_a_header_can_hold_a_secret() -> None:
    text = 'kind = "openai-chat"\nheaders = { api-key = "env:AZURE_KEY" }'
    assert backend(text, {"AZURE_KEY": "az-secret"}).headers == {"api-key": "az-secret"}
    assert backend(text).missing == "AZURE_KEY is not set"


def test_no_secret_is_shown_by_a_config() -> None:
    text = EXAMPLE.replace("[models]", 'headers = { x-key = "hd-secret" }\n[models]')
    config = loaded(text, KEYS)
    assert config.backends[0].headers == {"x-key": "hd-secret"}
    out = io.StringIO()
    Console(file=out, width=500).print(config)
    for shown in (repr(config), str(config), repr(config.backends[0]), out.getvalue()):
        assert "x-key" in shown
        assert "-secret" not in shown


@pytest.mark.parametrize(
    "text",
    [
        "[server]\nkeys = 'sk-secret'",
        "[server]\nkeys = [['sk-secret']]",
        "[server]\nkeys = ['sk-secret\\n.']",
        "[backends.x]\nkind = 'demo'\nkey = ['sk-secret']",
        "[backends.x]\nkind = 'demo'\nkey = 'sk-secret\u00e9'",
        "[backends.x]\nkind = 'demo'\nheaders = 'sk-secret'",
        '[backends.x]\nkind = "demo"\nheaders = { a = "sk-secret\\nb" }',
        "[backends.x]\nkind = 'demo'\nbase_url = 'https://user:sk-secret@example.com'",
        "[backends.x]\nkind = 'demo'\nbase_url = 'https://example.com/v1?key=sk-secret'",
    ],
)
def test_no_secret_is_shown_by_an_error(text: str) -> None:
    if "\\n." in text:
        text = text.replace("'", '"')
    sentence = refused(text)
    assert "sk-secret" not in sentence
    assert "; expected " in sentence


def test_a_script_lies_beside_the_file(folder: Path) -> None:
    assert backend('kind = "scripted"\nscript = "a/b.json"').script == str(folder / "a" / "b.json")
    assert backend('kind = "scripted"').script == ""


def test_recording_is_on_without_keys_and_off_with_keys() -> None:
    assert loaded("").is_recorded
    assert not loaded("[server]\nkeys = ['abcdefgh']").is_recorded
    assert loaded("[server]\nkeys = ['abcdefgh']\n[flows]\nenabled = true").is_recorded
    assert not loaded("[flows]\nenabled = false").is_recorded
    assert not loaded("[server]\nkeys = ['abcdefgh']\n[flows]\nenabled = 'auto'").is_recorded


def test_a_cluster(folder: Path) -> None:
    assert loaded("").cluster is None
    config = loaded(
        '[cluster]\nsecret = "env:SECRET"\nhost = "env:POD_IP"\nport = 7000', {"SECRET": "s" * 16, "POD_IP": "10.0.0.7"}
    )
    assert config.cluster == ClusterConfig(secret=Secret("s" * 16), host="10.0.0.7", port=7000)
    assert "s" * 16 not in repr(config)
    assert "fewer than 16 characters" in refused('[cluster]\nsecret = "short"')
    assert "SECRET is not set" in refused('[cluster]\nsecret = "env:SECRET"')


def test_the_store(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert loaded("").store == StoreConfig(kind="sqlite", path="", max_age_days=30, max_mb=512)
    config = loaded('[store]\nkind = "sqlite"\npath = "state/my.db"\nmax_age_days = 7\nmax_mb = 8')
    assert config.store == StoreConfig(path=str(folder / "state" / "my.db"), max_age_days=7, max_mb=8)
    assert loaded('[store]\nkind = "memory"').store.kind == "memory"
    assert loaded('[store]\npath = "/var/lib/state.db"').store.path == "/var/lib/state.db"
    monkeypatch.setenv("HOME", str(folder / "home"))
    assert loaded('[store]\npath = "~/state.db"').store.path == str(folder / "home" / "state.db")


def test_the_store_lies_in_the_users_data_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(folder / "data"))
    assert default_store_path() == folder / "data" / "toolwire" / "state.db"


def test_the_search(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert loaded("").search is None
    asked = '[search]\nkind = "searxng"\nurl = "http://127.0.0.1:8080"\ntimeout = 3\nresults = 4'
    assert loaded(asked).search == SearchConfig(kind="searxng", url="http://127.0.0.1:8080", timeout=3.0, results=4)
    monkeypatch.setenv("HOME", str(folder / "home"))
    programs = {"look": "look", "./look": str(folder / "look"), "/bin/look": "/bin/look"}
    for written, program in {**programs, "~/look": str(folder / "home" / "look")}.items():
        assert loaded(f'[search]\nkind = "command"\ncommand = "{written}"').search == SearchConfig(
            kind="command", command=program
        )


@pytest.mark.parametrize(
    ("search", "message"),
    [
        ("", "kind is missing"),
        ('kind = "google"', 'found "google"; expected one of "searxng", "command"'),
        ('kind = "searxng"', "url is missing"),
        ('kind = "command"', "command is missing"),
        ('kind = "searxng"\nurl = "127.0.0.1"', "found no complete URL"),
        ('kind = "searxng"\nurl = "http://a"\ncommand = "x"', "found command for kind"),
        ('kind = "command"\ncommand = "/a\\u0000"', "expected the path of a program"),
        ('kind = "command"\ncommand = "~nobody-here/x"', "expected the path of a program"),
        ('kind = "command"\ncommand = "x"\nresults = 0', "expected a whole number from 1 to 20"),
        ('kind = "command"\ncommand = "x"\nresult = 1', 'did you mean "results"?'),
    ],
)
def test_a_search_that_cannot_be(folder: Path, search: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        loaded(f"[search]\n{search}")
    assert message in error.value.message


@pytest.mark.parametrize("url", ["https://api.openai.com/v1", "http://127.0.0.1:11434/v1", "http://[::1]:8080"])
def test_urls_that_are_well(url: str) -> None:
    assert url_fault(url) == ""


@pytest.mark.parametrize(
    "url", ["", "api.openai.com", "ftp://x", "https://", "http://x:99999", "http://x:0", "http://a b", "http://[::1"]
)
def test_urls_that_are_not(url: str) -> None:
    assert url_fault(url).startswith("found ")


@pytest.mark.parametrize(
    ("kinds", "default"),
    [
        ({}, ""),
        ({"a": "openai-chat"}, "a"),
        ({"a": "openai-chat", "b": "anthropic"}, ""),
        ({"a": "openai-chat", "b": "scripted", "c": "demo"}, "a"),
        ({"b": "scripted"}, ""),
    ],
)
def test_with_one_back_end_that_is_the_default(kinds: dict[str, str], default: str) -> None:
    config = loaded("\n".join(f'[backends.{name}]\nkind = "{kind}"' for name, kind in kinds.items()))
    assert config.server.default == default


def test_back_ends_that_were_found_come_before_the_demo() -> None:
    config = with_backends(load(None, {}), [BackendConfig(name="ollama", kind="openai-chat")])
    assert [each.name for each in config.backends] == ["ollama", "demo"]
    assert config.server.default == "ollama"


def test_a_back_end_of_the_owners_may_be_called_demo() -> None:
    [demo] = loaded('[backends.demo]\nkind = "openai-chat"').backends
    assert demo.kind == "openai-chat"


def test_flags_go_before_the_file() -> None:
    config = with_address(loaded('[server]\nport = 1000\nhost = "localhost"'), None, 2000)
    assert (config.server.host, config.server.port) == ("localhost", 2000)
    assert with_address(config, "127.0.0.2").server.host == "127.0.0.2"


@pytest.mark.parametrize(
    ("host", "port", "where"), [("0.0.0.0", None, "--host"), (None, 0, "--port"), ("", 1, "--host")]
)
def test_flags_are_checked_like_the_file(host: str | None, port: int | None, where: str) -> None:
    with pytest.raises(ConfigError) as caught:
        with_address(Config(), host, port)
    assert caught.value.where == where


@pytest.mark.parametrize(
    ("host", "is_one"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("LOCALHOST", True),
        ("localhost.evil", False),
        ("", False),
    ],
)
def test_loopback(host: str, is_one: bool) -> None:
    assert is_loopback(host) is is_one


def test_a_config_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        setattr(Config(), "path", "x")  # noqa: B010 (mypy knows better)
    assert msgspec.structs.replace(Config(), path="x").path == "x"


def test_simulated_tools_are_corrected_unless_configured_otherwise() -> None:
    plain = backend('kind = "openai-chat"\ntools = "simulate"')
    assert (plain.is_simulated, plain.guard, plain.policy, plain.unknown_tool) == (True, "retry", "text", "correct")
    own = backend('kind = "openai-chat"\ntools = "simulate"\nguard = "check"\npolicy = "error"\nunknown_tool = "emit"')
    assert (own.guard, own.policy, own.unknown_tool) == ("check", "error", "emit")
    assert backend('kind = "codex"\ntier = "sentinel"').is_simulated
    native = backend('kind = "openai-chat"')
    assert (native.is_simulated, native.guard, native.policy) == (False, "repair", "pass")


def test_the_removed_tier_of_codex_is_accepted_with_a_warning() -> None:
    config = loaded('[backends.mine]\nkind = "codex"\ntier = "mcp"')
    assert 'backends.mine.tier: the tier "mcp" was removed; "auto" is used instead' in config.warnings[0]
    assert not config.backends[0].is_simulated


def test_a_program_of_the_users_has_settings_that_others_have_not() -> None:
    codex = backend(
        'kind = "codex"\ncommand = ["codex", "app-server"]\nconfig = { model = "m", sk = "secret" }\nworkers = 3'
    )
    assert (codex.command, codex.config["model"], codex.workers, codex.tier) == (
        ("codex", "app-server"),
        "m",
        3,
        "auto",
    )
    assert "secret" not in repr(codex)
    for key, value in (
        ("command", '["x"]'),
        ("config", "{}"),
        ("workers", "2"),
        ("tier", '"held"'),
        ("keep_threads", "false"),
    ):
        sentence = refused(f'[backends.x]\nkind = "openai-chat"\n{key} = {value}')
        assert (
            sentence
            == f'toolwire.toml, line 3, backends.x.{key}: found {key} for kind "openai-chat"; expected it only for kind "codex".'
        )
    assert codex.built_in_tools == ()
    own = 'kind = "codex"\nbuilt_in_tools = ["web_search", "view_image"]'
    assert backend(own).built_in_tools == ("web_search", "view_image")
    assert "built_in_tools" in refused('[backends.x]\nkind = "codex"\nbuilt_in_tools = ["shell"]')
    assert "an empty string" in refused('[backends.x]\nkind = "codex"\ncommand = ["codex", ""]')
    assert "beside tools" in refused('[backends.x]\nkind = "codex"\ntools = "simulate"\ntier = "held"')
    assert "beside tools" in refused('[backends.x]\nkind = "codex"\ntools = "native"\ntier = "sentinel"')
    assert "expected a table" in refused('[backends.x]\nkind = "codex"\nconfig = "x"')


def test_an_agent_service_by_subscription() -> None:
    text = 'kind = "cursor"\nkey = "env:K"\nclient_version = "cli-2026.08.11"\nlocal_tools = ["read", "grep"]\nworkspace = "sub"'
    config = loaded(f"[backends.x]\n{text}", {"K": "secret"}).backends[0]
    assert (config.base_url, config.client_type, config.client_version) == (
        "https://api2.cursor.sh",
        "cli",
        "cli-2026.08.11",
    )
    assert (config.local_tools, config.transport, config.park_seconds) == (("read", "grep"), "auto", 600)
    assert config.workspace.endswith("/sub")
    assert (config.sandbox, config.request_context) == ("required", "first")
    assert (config.stall_heartbeats, config.stall_seconds) == (10, 12)
    assert (config.tool_schemas, config.results, config.agent_url) == ("value", "message", "")
    assert backend('kind = "cursor"\nagent_url = "https://a.test/"').agent_url == "https://a.test"
    assert "found no complete URL" in refused('[backends.x]\nkind = "cursor"\nagent_url = "a.test"')
    assert "from 0 (never) to 10000" in refused('[backends.x]\nkind = "cursor"\nstall_heartbeats = -1')
    assert "from 0 (never) to 10000" in refused('[backends.x]\nkind = "cursor"\nstall_seconds = 1.5')
    assert 'expected one of "required", "auto", "never"' in refused('[backends.x]\nkind = "cursor"\nsandbox = "no"')
    assert "secret" not in repr(config)
    assert backend('kind = "cursor"').missing == "neither key nor token is set"
    assert backend('kind = "cursor"').client_version == ""  # whose it would be, we do not know
    assert refused('[backends.x]\nkind = "cursor"\nkey = "k"\ntoken = "t"').endswith(
        "found both a key and a token; expected one of them."
    )
    assert 'found "raed"; expected one of "read", "list"' in refused(
        '[backends.x]\nkind = "cursor"\nlocal_tools = ["raed"]'
    )
    assert 'expected it only for kind "cursor"' in refused('[backends.x]\nkind = "codex"\ntransport = "sse"')
    assert "letters, digits" in refused('[backends.x]\nkind = "cursor"\nclient_type = "a b"')
    assert "from 0 (turns are not held open) to 3600" in refused('[backends.x]\nkind = "cursor"\npark_seconds = -1')


def test_the_file_of_a_trace_starts_at_the_configuration(tmp_path: Path) -> None:
    path = tmp_path / "toolwire.toml"
    path.write_text('[server]\nlog = "trace"\ntrace_file = "logs/trace.jsonl"\ntrace_max_mb = 8\n', encoding="utf-8")
    server = load(path, {}).server
    assert (server.log, server.trace_file, server.trace_max_mb) == ("trace", str(tmp_path / "logs" / "trace.jsonl"), 8)
    assert ServerConfig().trace_file == ""


def test_secrets_are_beside_the_store() -> None:
    assert secret_folder(StoreConfig(path="/data/state.db")) == Path("/data")
    assert secret_folder(StoreConfig()) == default_store_path().parent
    assert secret_folder(StoreConfig(kind="memory")) is None
