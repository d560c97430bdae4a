"""Who may use the inspector: keys, sessions, origins, hosts, and forged requests of other pages."""

from __future__ import annotations

import pytest

from tests.server.harness import server_config
from toolwire.config.secret import Secret
from toolwire.errors import BadRequest
from toolwire.server.auth import Guard
from toolwire.server.ui.access import COOKIE, LIFETIME, UiAccess

KEY, OTHER = "tw-inspector-key-1", "tw-inspector-key-2"
HOST = {"host": "127.0.0.1:18741"}
OWN = HOST | {"origin": "http://127.0.0.1:18741", "sec-fetch-site": "same-origin"}


def access(*keys: str, now: float = 1e9) -> UiAccess:
    return UiAccess(Guard(server_config(keys=tuple(map(Secret, keys)))), lambda: now)


def session(found: UiAccess, key: str = KEY) -> dict[str, str]:
    return {"cookie": found.login(key, OWN).partition(";")[0]}


def refusal(found: UiAccess, headers: dict[str, str], *, changes: bool = False) -> tuple[int, str]:
    with pytest.raises(BadRequest) as error:
        found.check_api(headers, changes=changes)
    return error.value.status, error.value.code


def test_without_keys_the_own_machine_may_read() -> None:
    access().check_api(HOST, changes=False)
    access().check_api(OWN | {"x-toolwire-ui": "1"}, changes=True)


@pytest.mark.parametrize(
    "origin",
    [
        "https://example.com",
        "http://localhost:3000",  # the same machine is another origin
        "http://127.0.0.1:18742",
        "https://127.0.0.1:18741.evil.example",
        "null",
        "",
        "file://",
        "vscode-webview://abc",
        "http://[broken",
    ],
)
@pytest.mark.parametrize("keys", [(), (KEY,)])
def test_other_origins_get_nothing(origin: str, keys: tuple[str, ...]) -> None:
    found = access(*keys)
    credentials = session(found) if keys else {}
    assert refusal(found, HOST | credentials | {"origin": origin}) == (403, "origin_refused")
    for check in (found.check_login, found.check_page):
        with pytest.raises(BadRequest):
            check(HOST | {"origin": origin})


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_what_another_page_loads_is_refused_without_an_origin_too(site: str) -> None:
    found = access()
    assert refusal(found, HOST | {"sec-fetch-site": site, "sec-fetch-mode": "no-cors"}) == (403, "origin_refused")
    with pytest.raises(BadRequest):
        found.check_page(HOST | {"sec-fetch-site": site, "sec-fetch-mode": "no-cors"}, is_document=True)


def test_a_link_on_another_page_may_open_the_page_but_no_data() -> None:
    found, headers = access(), HOST | {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    found.check_page(headers, is_document=True)
    assert refusal(found, headers) == (403, "origin_refused")


def test_a_name_that_resolves_to_this_machine_is_refused() -> None:
    """DNS rebinding: the page's own name, and an origin that fits it."""
    headers = {"host": "evil.example:18741", "origin": "http://evil.example:18741", "sec-fetch-site": "same-origin"}
    assert refusal(access(), headers) == (403, "host_refused")
    with pytest.raises(BadRequest):
        access().check_page(headers)
    assert refusal(access(KEY), headers) == (401, "authentication_failed")


def test_changes_need_a_header_that_a_form_cannot_set() -> None:
    assert refusal(access(), HOST, changes=True) == (403, "csrf_refused")
    found = access(KEY)
    assert refusal(found, OWN | session(found), changes=True) == (403, "csrf_refused")
    found.check_api(OWN | session(found) | {"x-toolwire-ui": "1"}, changes=True)
    found.check_api(HOST | {"authorization": f"Bearer {KEY}"}, changes=True)


def test_with_keys_a_key_or_a_session_is_needed() -> None:
    found = access(KEY, OTHER)
    assert refusal(found, HOST) == (401, "authentication_failed")
    assert refusal(found, HOST | {"authorization": "Bearer wrong"}) == (401, "authentication_failed")
    for headers in ({"authorization": f"Bearer {KEY}"}, {"x-api-key": OTHER}, session(found), session(found, OTHER)):
        found.check_api(HOST | headers, changes=False)


@pytest.mark.parametrize("key", ["", "wrong", KEY + "x", KEY[:-1], "\udcff\u00e9"])
def test_a_wrong_key_does_not_log_in(key: str) -> None:
    with pytest.raises(BadRequest) as error:
        access(KEY).login(key, OWN)
    assert error.value.status == 401


@pytest.mark.parametrize(
    "change",
    [
        lambda value: value[:-1] + ("0" if value[-1] != "0" else "1"),
        lambda value: value.replace("1000043200", "1999999999"),
        lambda value: value.partition(".")[0],
        lambda value: "",
        lambda value: "..",
        lambda value: "9" * 5000,
        lambda value: f"1000043200..{value.rpartition('.')[2]}",
    ],
)
def test_a_changed_cookie_is_worthless(change: object) -> None:
    found = access(KEY)
    value = session(found)["cookie"].removeprefix(f"{COOKIE}=")
    assert callable(change)
    assert refusal(found, HOST | {"cookie": f"{COOKIE}={change(value)}"}) == (401, "authentication_failed")


def test_a_session_ends_with_its_time_and_with_its_key() -> None:
    cookie = session(access(KEY))
    assert access(KEY, now=1e9 + LIFETIME - 1).is_logged_in(cookie)
    assert not access(KEY, now=1e9 + LIFETIME).is_logged_in(cookie)
    assert not access(OTHER).is_logged_in(cookie)


def test_the_cookie_is_for_this_site_and_not_for_scripts() -> None:
    cookie = access(KEY).login(KEY, OWN)
    assert KEY not in cookie
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
    assert "Secure" not in cookie
    assert "Secure" in access(KEY).login(KEY, OWN | {"x-forwarded-proto": "https"})
    assert "Max-Age=0" in access(KEY).logout(OWN)


def test_a_session_is_a_key_on_ordinary_paths_only_for_the_own_page() -> None:
    found = access(KEY)
    cookie = session(found)
    assert found.page_key(OWN | cookie | {"x-toolwire-ui": "1"}) == KEY
    assert found.page_key(HOST | cookie | {"x-toolwire-ui": "1", "sec-fetch-site": "same-origin"}) == KEY
    assert found.page_key(OWN | cookie) is None
    assert found.page_key(HOST | cookie | {"x-toolwire-ui": "1"}) is None
    assert found.page_key(OWN | cookie | {"x-toolwire-ui": "1", "origin": "http://localhost:3000"}) is None
    assert found.page_key(OWN | cookie | {"x-toolwire-ui": "1", "sec-fetch-site": "cross-site"}) is None
    assert found.page_key(OWN | {"x-toolwire-ui": "1"}) is None
