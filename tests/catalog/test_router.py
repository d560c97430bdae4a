"""The router: each rule, and what stands between them."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.catalog.router import Route, Router, router_for
from toolwire.config.file import BackendConfig, Config, ServerConfig, load
from toolwire.errors import BadRequest, InternalError
from toolwire.wire.model_names import EFFORTS

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


@pytest.mark.parametrize("aliases", [{"x": "nosuch/model"}, {"x": "y", "y": "nosuch/model"}, {"x*": "nosuch/model"}])
def test_an_alias_without_target_is_named(aliases: dict[str, str]) -> None:
    message = refusal("x", router(aliases))
    start = 'found no back end for the model "x", an alias of "nosuch/model", which no back end has; '
    assert message.startswith(start)
    assert '"x"' not in message.removeprefix(start)
    assert '"openai/gpt-5.5"' in message


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
    assert message.startswith(
        'found no back end for the model "zzzzzzzz"; known models are "openai/gpt-5.5", "openai/shared"'
    )
    assert "no models are known yet" in refusal("x", Router(["a"], {}, "", {}))
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
    before = time.process_time()
    message = refusal("model-\x1b[31m" + "x" * 1_000_000, large)
    assert time.process_time() - before < 1
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


def spelled(name: str, *listed: str, default: str = "", **aliases: str) -> tuple[str, str] | None:
    """Model and effort, where the one back end lists these; None where the name is not known."""
    found = Router(["only"], aliases, default, {"only": listed}).route_or_none(name)
    return None if found is None else (found.model, found.effort)


@pytest.mark.parametrize(
    ("name", "listed"),
    [
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("claude-sonnet-4-5", "claude-sonnet-4-5-20250929"),
        ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5-20250929"),
        ("gpt-5.5-2026-04-01", "gpt-5.5"),
        ("gpt-5.5", "gpt-5.5-2026-04-01"),
        ("claude-3-5-haiku-latest", "claude-3-5-haiku-20241022"),
        ("claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("claude-sonnet-4-5", "anthropic/claude-sonnet-4.5"),
        ("anthropic/claude-sonnet-4.5", "claude-sonnet-4-5-20250929"),
        ("openai/gpt-5.5", "gpt-5.5"),
        ("models/gemini-2.5-pro", "gemini-2.5-pro"),
        ("gemini-2.5-pro", "models/gemini-2.5-pro"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("claude-sonnet-4-5[1m]", "claude-sonnet-4-5"),
        ("claude-sonnet-4-5-20250929[1m]", "claude-sonnet-4-5"),
        ("deepseek-r1:free", "deepseek-r1"),
        ("claude-opus-4:thinking", "claude-opus-4"),
        ("GPT-5.5", "gpt-5.5"),
        ("gpt-5.5", "GPT-5.5"),
        ("llama3", "llama3:latest"),
        ("gpt-5.5-codex", "gpt-5.5"),
        ("gpt-5.5-codex", "gpt-5.5-2026-04-01"),
        ("gpt-5.5-HIGH", "gpt-5.5-high"),
    ],
)
def test_another_spelling_of_a_listed_name(name: str, listed: str) -> None:
    assert spelled(name, listed) == (listed, "")
    route = Router(["only"], {}, "", {"only": [listed]}).resolve(name)
    assert "another spelling" in route.why
    assert not route.is_guess


@pytest.mark.parametrize(
    ("name", "listed"),
    [
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5-20260101"),
        ("claude-sonnet-4-5", "claude-sonnet-4"),
        ("claude-sonnet-4", "claude-sonnet-4-5"),
        ("gpt-5.4-codex", "gpt-5.5"),
        ("gpt-5.5-codex", "gpt-5.4-codex"),
        ("gpt-5.5", "gpt-5.5-codex"),
        ("gpt-5.5-codex-max", "gpt-5.5"),
        ("gpt-5.5-mini", "gpt-5.5"),
        ("gpt-5.5", "gpt-5.5-high"),
        ("gpt-5.5-low", "gpt-5.5-high"),
        ("deepseek-r1", "deepseek-r1:free"),
        ("qwen3:8b", "qwen3:14b"),
        ("qwen3:8b", "qwen3"),
        ("mistral-medium", "mistral"),
        ("openai/gemma-3", "google/gemma-3"),
        ("azure/gpt-5.5", "gpt-5.5"),
        ("llama-3.8b", "llama-3-8b"),
        ("gpt-5.5[beta]", "gpt-5.5"),
        ("gpt-5.5-20251301", "gpt-5.5"),
    ],
)
def test_another_model_is_never_meant(name: str, listed: str) -> None:
    assert spelled(name, listed) is None
    assert spelled(name, listed, default="only") == (name, "")


@pytest.mark.parametrize("effort", EFFORTS)
def test_an_effort_is_split_from_the_model(effort: str) -> None:
    for name in (f"gpt-5.5-{effort}", f"gpt-5.5:{effort}", f"gpt-5.5({effort})", f"GPT-5.5-codex-{effort}"):
        assert spelled(name, "gpt-5.5") == ("gpt-5.5", effort)
    assert spelled(f"gpt-5.5-{effort}", "gpt-5.5", f"gpt-5.5-{effort}") == (f"gpt-5.5-{effort}", "")
    assert spelled(f"fast:{effort}", "gpt-5.5", fast="gpt-5.5") == ("gpt-5.5", effort)
    assert spelled("deep", "gpt-5.5", deep=f"gpt-5.5-{effort}") == ("gpt-5.5", effort)
    assert spelled("deep(low)", "gpt-5.5", deep=f"gpt-5.5-{effort}") == ("gpt-5.5", "low")


def test_of_several_dates_its_own_else_none_else_the_newest() -> None:
    dated = ("m-1-20250101", "m-1-20260101", "m-1-2025-12-31")
    assert spelled("M-1", *dated) == ("m-1-20260101", "")
    assert spelled("M-1-2025-01-01", *dated, "m-1") == ("m-1-20250101", "")
    assert spelled("M-1", *dated, "m-1") == ("m-1", "")
    assert spelled("m-1-20240101", *dated, "m-1") == ("m-1", "")
    assert spelled("m-1-20240101", *dated) is None


def test_two_names_of_equal_rank_are_none() -> None:
    assert spelled("gpt-x", "GPT-X", "Gpt-x") is None
    assert spelled("Openai/m-1", "openai/M-1", "m-1") == ("openai/M-1", "")
    assert spelled("m-1", "openai/m-1", "google/m-1") is None


def placed(name: str, default: str = "", **listed: Sequence[str]) -> str:
    found = Router(list(listed), {}, default, listed).route_or_none(name)
    return "" if found is None else f"{found.backend}/{found.model}"


def test_of_several_back_ends_the_default_else_the_only_nearest() -> None:
    assert placed("m-1-high", "b", a=["m-1"], b=["m-1"]) == "b/m-1"
    assert placed("m-1-high", "", a=["m-1"], b=["m-1"]) == ""
    assert placed("m-1-high", "c", a=["m-1"], b=["m-1"], c=["x"]) == "c/m-1-high"
    assert placed("claude-1", "", a=["anthropic/claude-1"], b=["claude-1-20250101"], c=["x"]) == "a/anthropic/claude-1"
    assert placed("claude-1[1m]", "", a=["anthropic/claude-1"], b=["claude-1"]) == "b/claude-1"
    assert placed("M-1", "", a=["m-1-20250101"], b=["m-1-20260101"]) == "b/m-1-20260101"
    assert placed("M-1", "a", a=["m-1-20250101"], b=["m-1-20260101"]) == "a/m-1-20250101"


def test_exact_rules_go_before_other_spellings() -> None:
    assert placed("m-1-20250101", "a", a=["m-1"], b=["m-1-20250101"]) == "b/m-1-20250101"
    assert placed("a/m-1-20250101", "", a=["m-1"]) == "a/m-1-20250101"
    assert placed("a/m-1-high", "", a=["m-1"]) == "a/m-1-high"
    assert placed("A/m-1-high", "b", a=["m-1"], b=[]) == "b/A/m-1-high"
    assert placed("openai/m-1-high", "", openai=[], b=["m-1"]) == "openai/m-1-high"


def test_aliases_have_other_spellings_too() -> None:
    aliases = {"claude-haiku-4-5": "local/small", "claude-sonnet-4.5": "local/big"}
    for name in ("claude-haiku-4-5-20251001", "Claude-Haiku-4.5", "anthropic/claude-haiku-4-5"):
        assert resolved(name, aliases, "openai") == ("local", "small")
    assert resolved("claude-sonnet-4-5[1m]", aliases) == ("local", "big")
    assert "another spelling of the alias" in router(aliases).resolve("claude-haiku-4-5-20251001").why
    assert router(aliases).resolve("claude-haiku-4-5-20251001").is_alias


def test_an_alias_that_leads_to_another_spelling_of_itself_ends() -> None:
    assert spelled("m-1", "x", default="only", **{"m-1": "m-1-20250101"}) == ("m-1-20250101", "")
    assert spelled("m-1", "m-1-20250101", **{"m-1": "M-1"}) == ("m-1-20250101", "")


def test_one_alias_for_many_names() -> None:
    aliases = {
        "claude-*": "openai/gpt-5.5",
        "claude-haiku-*": "local/small",
        "claude-opus-4-5": "local/big",
        "*-thinking": "local/thinker",
        "meta-*": "router/meta/*",
    }
    expected = {
        "claude-sonnet-4-5-20250929": ("openai", "gpt-5.5"),
        "claude-": ("openai", "gpt-5.5"),
        "claude-haiku-4-5": ("local", "small"),
        "claude-opus-4-5": ("local", "big"),
        "claude-opus-4-5-20251101": ("local", "big"),
        "CLAUDE-SONNET-5": ("openai", "gpt-5.5"),
        "anthropic/claude-sonnet-4.5": ("openai", "gpt-5.5"),
        "kimi-thinking": ("local", "thinker"),
        "claude-x-thinking": ("openai", "gpt-5.5"),
        "meta-llama": ("router", "meta/llama"),
        "router/claude-x": ("router", "claude-x"),
        "claude": ("demo", "claude"),
    }
    for name, place in expected.items():
        assert resolved(name, aliases, "demo") == place, name
    assert router(aliases).resolve("claude-x").why.startswith('"claude-x" matches the alias "claude-*"')
    assert router(aliases).aliases == ["claude-opus-4-5"]


def test_a_pattern_goes_before_lists_and_not_before_back_ends() -> None:
    assert resolved("gpt-5.5", {"gpt-*": "local/mine"}) == ("local", "mine")
    assert resolved("openai/gpt-5.5", {"*": "local/mine"}) == ("openai", "gpt-5.5")
    assert resolved("openai/gpt-5.5", {"openai/*": "local/*"}) == ("local", "gpt-5.5")
    assert resolved("whatever", {"*": "local/mine"}) == ("local", "mine")


def test_patterns_in_a_circle_end() -> None:
    assert resolved("claude-x", {"claude-*": "claude-y"}, "local") == ("local", "claude-y")
    assert resolved("a-1", {"a-*": "b-*", "b-*": "a-*"}, "local") == ("local", "a-1")
    assert resolved("a-1", {"a-*": "b", "b": "a-2"}, "local") == ("local", "a-2")


def test_a_guess_needs_a_list_only_where_it_could_tell_more() -> None:
    unknown = Router(["a"], {}, "a", {})
    assert [unknown.resolve(name).needs_list for name in ("gpt-5.5", "gpt-5.5-high", "m-20250101")] == [
        False,
        True,
        True,
    ]
    unknown.note_models("a", ["x"])
    assert not unknown.resolve("gpt-5.5-high").needs_list


STEMS = (
    "claude-sonnet-4-5",
    "claude-sonnet-4",
    "claude-opus-4-5",
    "gpt-5.5",
    "gpt-5.4",
    "gpt-5",
    "gpt-5.5-mini",
    "o4-mini",
)
DATES = ("", "-20250929", "-20260101", "-2026-04-01", "-latest")
ENDS = ("", "[1m]", ":free", ":thinking", "-high", "(low)", "-codex", "-max", ":8b")
NAMES_SENT = st.builds(
    lambda prefix, stem, date, ends: prefix + stem + date + "".join(ends),
    st.sampled_from(["", "anthropic/", "openai/", "models/", "anthropic."]),
    st.sampled_from(STEMS)
    | st.sampled_from(STEMS).map(str.upper)
    | st.sampled_from(STEMS).map(lambda one: one.replace(".", "-")),
    st.sampled_from(DATES),
    st.lists(st.sampled_from(ENDS), max_size=2),
)


def meant(name: str) -> tuple[str, str, str]:
    """Said in another way than the router does: the model, its date, and what else is told of it."""
    rest = name.lower().removeprefix("anthropic.").rpartition("/")[2].replace(".", "-")
    stem = max((one.replace(".", "-") for one in STEMS if rest.startswith(one.replace(".", "-"))), key=len)
    rest = rest[len(stem) :]
    date = next((one for one in DATES[1:] if rest.startswith(one)), "")
    return stem, date.replace("-", "").replace("latest", ""), rest[len(date) :]


@given(NAMES_SENT, st.lists(NAMES_SENT, max_size=12))
def test_another_spelling_differs_in_nothing_else(name: str, listed: list[str]) -> None:
    route = Router(["x"], {}, "", {"x": listed}).route_or_none(name)
    if route is None or route.model == name:
        assert route is not None or name not in listed
        return
    assert route.model in listed
    (asked, date, more), (stem, other_date, kept) = meant(name), meant(route.model)
    assert asked == stem
    assert date == other_date or not date or not other_date
    assert more.startswith(kept)
    gone = more[len(kept) :]
    assert all(part not in gone for part in ("-max", ":8b"))
    if route.effort:
        assert route.effort in gone
    assert ("high" in gone or "low" in gone) == bool(route.effort)


def test_long_lists_cost_nothing_for_each_request() -> None:
    models = [f"maker/model-{number}.5-{2020 + number % 7}0101" for number in range(10_000)]
    large = Router(["a", "b"], {"fast": "a/x"}, "a", {"a": models, "b": [f"x{name}" for name in models]})
    cases = ["".join(letter.upper() if number >> place & 1 else letter for place, letter in enumerate("abcdefghijklm-1")) for number in range(8000)]  # fmt: skip
    alike = Router(["a"], {}, "a", {"a": cases[1:]})

    def cost(of: Router, name: str) -> float:
        before = time.process_time()
        for _ in range(200):
            of.route_or_none(name)
        return time.process_time() - before

    assert cost(large, "model-77-5-high") < 0.5
    assert cost(large, models[77]) < 0.1
    assert cost(alike, cases[0]) < 0.5
    before = time.process_time()
    large.note_models("a", models)
    assert time.process_time() - before < 0.2


def test_a_route_has_no_effort_where_none_is_named() -> None:
    assert Route(backend="a", model="m", why="").effort == ""
    assert router().resolve("gpt-5.5").effort == ""


def test_the_first_example_of_the_document_works(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "models.md").read_text(encoding="utf-8")
    sample = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)[0]
    path = tmp_path / "toolwire.toml"
    path.write_text(sample, encoding="utf-8")
    documented = router_for(load(path, {"OPENAI_API_KEY": "k"}))
    expected = {
        "fast": "gpt-5.5",
        "fast(xhigh)": "gpt-5.5",
        "claude-haiku-4-5-20251001": "gpt-5.5-mini",
        "claude-sonnet-4-5-20250929": "gpt-5.5",
        "llama-4": "meta-llama/llama-4",
    }
    assert {name: documented.resolve(name).model for name in expected} == expected
