from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.backends.http.proxy import Proxy, choose_proxy, parse_proxy
from toolwire.errors import ConfigError

PROXY = "http://proxy.test:3128"
THE_PROXY = Proxy(scheme="http", host="proxy.test", port=3128)


def chosen(
    environ: dict[str, str], host: str = "model.test", *, scheme: str = "https", port: int = 443
) -> Proxy | None:
    return choose_proxy(environ, scheme, host, port)


@pytest.mark.parametrize("name", ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"])
def test_each_variable_in_both_cases(name: str) -> None:
    assert chosen({name: PROXY}) == THE_PROXY


@pytest.mark.parametrize("name", ["http_proxy", "HTTP_PROXY"])
def test_plain_http_has_its_own_variable(name: str) -> None:
    assert chosen({name: PROXY}, scheme="http", port=80) == THE_PROXY
    assert chosen({name: PROXY}) is None


def test_own_variable_wins_over_all_proxy_and_lower_case_over_upper() -> None:
    assert chosen({"ALL_PROXY": "http://other.test", "HTTPS_PROXY": PROXY}) == THE_PROXY
    assert chosen({"HTTPS_PROXY": "http://other.test", "https_proxy": PROXY}) == THE_PROXY


def test_set_but_empty_means_no_proxy() -> None:
    assert chosen({"https_proxy": "", "HTTPS_PROXY": PROXY, "ALL_PROXY": PROXY}) is None


def test_client_header_is_not_taken_for_http_proxy_under_cgi() -> None:
    environ = {"HTTP_PROXY": PROXY, "REQUEST_METHOD": "POST"}
    assert chosen(environ, scheme="http", port=80) is None
    assert chosen(environ | {"http_proxy": PROXY}, scheme="http", port=80) == THE_PROXY


@pytest.mark.parametrize("host", ["localhost", "ollama.localhost", "127.0.0.1", "127.8.8.8", "::1"])
def test_loopback_never_goes_through_a_proxy(host: str) -> None:
    assert chosen({"ALL_PROXY": PROXY}, host) is None


@pytest.mark.parametrize(
    ("no_proxy", "host", "is_direct"),
    [
        ("*", "model.test", True),
        ("model.test", "model.test", True),
        ("MODEL.test", "model.test", True),
        ("model.test", "model.test.", True),
        ("model.test", "api.model.test", True),
        (".model.test", "api.model.test", True),
        ("*.model.test", "api.model.test", True),
        (".model.test", "model.test", True),
        ("model.test", "supermodel.test", False),
        ("other.test, model.test", "model.test", True),
        ("other.test model.test", "model.test", True),
        ("model.test:443", "model.test", True),
        ("model.test:8443", "model.test", False),
        ("10.0.0.0/8", "10.1.2.3", True),
        ("10.0.0.0/8", "11.1.2.3", False),
        ("10.0.0.0/8", "model.test", False),
        ("10.0.0.0/99", "10.1.2.3", False),
        ("192.0.2.7", "192.0.2.7", True),
        ("2001:db8::1", "2001:db8:0::1", True),
        ("[2001:db8::1]:443", "2001:db8::1", True),
        ("[2001:db8::1]:80", "2001:db8::1", False),
        ("2001:db8::/32", "2001:db8::9", True),
        ("2.7", "192.0.2.7", False),
        ("", "model.test", False),
        (" , .,", "model.test", False),
    ],
)
def test_no_proxy(no_proxy: str, host: str, is_direct: bool) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        assert (chosen({"ALL_PROXY": PROXY, name: no_proxy}, host) is None) is is_direct


def test_scheme_and_port_have_defaults() -> None:
    assert parse_proxy("proxy.test", "X") == Proxy(scheme="http", host="proxy.test", port=80)
    assert parse_proxy("proxy.test:3128", "X") == THE_PROXY
    assert parse_proxy("https://proxy.test", "X") == Proxy(scheme="https", host="proxy.test", port=443)
    assert parse_proxy("http://[2001:db8::1]:8080/", "X").address == "[2001:db8::1]:8080"


def test_credentials_become_basic_authorization_and_stay_out_of_repr() -> None:
    proxy = parse_proxy("http://us%40er:pa%3Ass@proxy.test:3128", "HTTPS_PROXY")
    assert proxy.authorization == "Basic " + base64.b64encode(b"us@er:pa:ss").decode()
    assert repr(proxy) == "Proxy(http://proxy.test:3128)"
    assert proxy.authorization not in f"{proxy} {[proxy]}"


@pytest.mark.parametrize(
    "value", ["socks5://u:hunter2@proxy.test", "http://u:hunter2@", "http://u:hunter2@h:99999", "http://[u:hunter2@h"]
)
def test_senseless_proxy_is_the_owners_fault_and_its_password_stays_secret(value: str) -> None:
    with pytest.raises(ConfigError) as caught:
        chosen({"HTTPS_PROXY": value})
    assert "HTTPS_PROXY" in caught.value.sentence()
    assert "hunter2" not in caught.value.sentence()


def test_senseless_proxy_does_not_matter_where_it_is_not_used() -> None:
    assert chosen({"ALL_PROXY": "socks5://proxy.test", "NO_PROXY": "model.test"}) is None


@given(st.text(max_size=40), st.text(max_size=40), st.sampled_from(["model.test", "10.1.2.3", "2001:db8::1"]))
def test_any_value_gives_a_proxy_or_a_config_error(value: str, no_proxy: str, host: str) -> None:
    try:
        proxy = chosen({"https_proxy": value, "no_proxy": no_proxy}, host)
    except ConfigError:
        return
    assert proxy is None or (proxy.host and 0 <= proxy.port <= 65535)
