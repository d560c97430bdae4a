"""The router: each rule, and what stands between them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.config import BackendConfig, Config, ServerConfig
from toolwire.errors import BadRequest, InternalError
from toolwire.router import Router, router_for

LISTED = {"openai": ["gpt-5.5", "shared"], "router": ["openai/gpt-5.5", "meta/llama", "shared"], "demo": ["echo-tools"]}


def router(
    aliases: Mapping[str, str] | None = None, default: str = "", listed: Mapping[str, Sequence[str]] = LISTED
) -> Router:
    return Router(["openai", "router", "local", "demo"], aliases or {}, default, listed)


def resolved(name: str, aliases: Mapping[str, str] | None = None, default: str = "") -> tuple[str, str]:
    route = router(aliases, default).resolve(name)
    assert route.why
    return route.backend, route.model


def refusal(name: str, of: Router | None = None) -> str:
    with pytest.raises(BadRequest) as caught:
        (of or router()).resolve(name)
    error = caught.value
    assert (error.status, error.code, error.where) == (404, "model_not_found", "model")
    return error.message


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("openai/gpt-5.5", ("openai", "gpt-5.5")),
        ("openai/not-listed", ("openai", "not-listed")),
        ("local/anything", ("local", "anything")),
        ("router/openai/gpt-5.5", ("router", "openai/gpt-5.5")),
        ("local/a/b/c", ("local", "a/b/c")),
        ("gpt-5.5", ("openai", "gpt-5.5")),
        ("meta/llama", ("router", "meta/llama")),
        ("echo-tools", ("demo", "echo-tools")),
    ],
)
def test_prefixes_and_listed_names(name: str, expected: tuple[str, str]) -> None:
    assert resolved(name) == expected
    assert resolved(name, default="local") == expected


def test_an_alias_goes_before_everything() -> None:
    assert resolved("fast", {"fast": "openai/gpt-5.5"}) == ("openai", "gpt-5.5")
    assert resolved("gpt-5.5", {"gpt-5.5": "local/mine"}) == ("local", "mine")
    assert resolved("openai/gpt-5.5", {"openai/gpt-5.5": "local/mine"}) == ("local", "mine")


def test_the_target_of_an_alias_goes_through_the_rules() -> None:
    aliases = {"a": "b", "b": "meta/llama", "c": "unknown"}
    assert resolved("a", aliases) == ("router", "meta/llama")
    assert resolved("c", aliases, default="local") == ("local", "unknown")
    assert '"a" is an alias' in router(aliases).resolve("a").why


def test_aliases_in_a_circle_end() -> None:
    assert resolved("a", {"a": "b", "b": "a"}, default="local") == ("local", "a")
    assert resolved("gpt-5.5", {"gpt-5.5": "gpt-5.5"}) == ("openai", "gpt-5.5")


def test_of_several_the_default_and_else_the_first() -> None:
    assert resolved("shared", default="router") == ("router", "shared")
    assert resolved("shared", default="local") == ("openai", "shared")
    assert "2 back ends list it" in router().resolve("shared").why
    assert "the first" in router().resolve("shared").why
    assert "the default" in router(default="router").resolve("shared").why


def test_an_unknown_name_goes_to_the_default_unchanged() -> None:
    assert resolved("claude-x", default="local") == ("local", "claude-x")
    assert resolved("azure/gpt-5.5", default="local") == ("local", "azure/gpt-5.5")


def test_a_server_may_list_models_under_its_own_name() -> None:
    listed = {"openai": ["openai/gpt-oss", "openai/twice", "twice"]}
    assert router(listed=listed).resolve("openai/gpt-oss").model == "openai/gpt-oss"
    assert router(listed=listed).resolve("openai/twice").model == "twice"


def test_a_prefix_is_never_overruled_by_another_back_end() -> None:
    route = router(listed={"local": ["x"], "router": ["local/private"]}).resolve("local/private")
    assert (route.backend, route.model) == ("local", "private")


def test_an_unknown_name_without_a_default_is_refused_with_near_names() -> None:
    assert '"openai/gpt-5.5"' in refusal("gpt-5")
    assert '"router/meta/llama"' in refusal("meta/lama")
    assert '"openai/gpt-5.5"' in refusal("azure/gpt-5.5")
    assert '"fast"' in refusal("fats", router({"fast": "x/y"}))


def test_where_nothing_is_near_the_known_names_are_shown() -> None:
    message = refusal("zzzzzzzz")
    assert message.startswith('found no back end for the model "zzzzzzzz"; there are "openai/gpt-5.5", "openai/shared"')
    assert "no models known yet" in refusal("x", Router(["a"], {}, "", {}))
    many = Router(["a"], {}, "", {"a": [f"m{number}" for number in range(50)]})
    assert refusal("zzzzzzzz", many).count('"a/m') == 8


@pytest.mark.parametrize("name", ["openai/", "", "/", "/gpt-5.5x"])
def test_half_a_name_is_refused(name: str) -> None:
    refusal(name)


def test_a_back_end_without_a_model_is_refused_even_with_a_default() -> None:
    refusal("openai/", router(default="local"))


def test_what_a_back_end_lists_can_change() -> None:
    changing = router()
    changing.note_models("local", ["new"])
    assert changing.resolve("new").backend == "local"
    changing.note_models("local", ["newer"])
    refusal("new-gone", changing)
    with pytest.raises(BadRequest):
        changing.resolve("new")
    with pytest.raises(InternalError):
        changing.note_models("nobody", ["x"])


def test_a_long_or_hostile_name_is_refused_quickly_and_shortly() -> None:
    large = Router(["a"], {}, "", {"a": [f"model-{number}-{'x' * 50}" for number in range(20_000)]})
    before = time.monotonic()
    message = refusal("model-\x1b[31m" + "x" * 1_000_000, large)
    assert time.monotonic() - before < 1
    assert len(message) < 3000
    assert "\x1b" not in message


@given(st.text(max_size=30))
def test_with_a_default_only_half_a_name_is_refused(name: str) -> None:
    if name in ("openai/", "router/", "local/", "demo/"):
        return
    route = router({"a": "b"}, "local").resolve(name)
    assert route.backend in ("openai", "router", "local", "demo")


def test_a_router_for_a_configuration() -> None:
    config = Config(
        server=ServerConfig(default="b"),
        backends=(
            BackendConfig(name="a", kind="openai-chat", models=("m",)),
            BackendConfig(name="b", kind="anthropic"),
        ),
        aliases={"fast": "a/m"},
    )
    routes = [router_for(config).resolve(name) for name in ("fast", "m", "other")]
    assert [(route.backend, route.model) for route in routes] == [("a", "m"), ("a", "m"), ("b", "other")]
