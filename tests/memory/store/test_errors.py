"""Faults of the store in words that help the one who reads them."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from toolwire.errors import ConfigError, GatewayError, InternalError
from toolwire.memory.store import errors as failures


def sqlite_error(code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("words of SQLite")
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (sqlite3.SQLITE_FULL, "no room"),
        (sqlite3.SQLITE_BUSY, "locked"),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, "locked"),
        (sqlite3.SQLITE_IOERR_WRITE, "disk"),
        (sqlite3.SQLITE_READONLY_DBMOVED, "written"),
        (sqlite3.SQLITE_CANTOPEN, "opened"),
        (sqlite3.SQLITE_CORRUPT, "damaged"),
        (sqlite3.SQLITE_NOTADB, "not a database"),
    ],
)
def test_the_owner_reads_a_path_and_a_client_does_not(code: int, words: str) -> None:
    at_start = failures.at_start(Path("/home/ann/state.db"), sqlite_error(code))
    assert at_start.sentence().startswith("/home/ann/state.db: ")
    assert words in at_start.message
    assert at_start.hint
    for error in (failures.while_running(sqlite_error(code)), failures.while_running(at_start)):
        assert error.status == 503
        assert words in error.message
        assert "/home" not in error.sentence()


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        (sqlite3.SQLITE_CORRUPT, "Move it away"),
        (sqlite3.SQLITE_READONLY, "right to write"),
        (sqlite3.SQLITE_BUSY, "Try"),
    ],
)
def test_an_owner_at_the_command_line_reads_the_path_again(code: int, hint: str) -> None:
    told = failures.for_owner(Path("/home/ann/state.db"), failures.while_running(sqlite_error(code)))
    assert isinstance(told, ConfigError)
    assert told.sentence().startswith("/home/ann/state.db: the store cannot be used now: ")
    assert hint in told.hint
    assert "Requests" not in told.sentence()


def test_unknown_errors_have_a_message_too() -> None:
    assert failures.at_start(Path("x"), sqlite_error(sqlite3.SQLITE_MISMATCH)).hint
    assert failures.while_running(sqlite3.ProgrammingError("closed")).status == 503
    assert isinstance(failures.while_running(KeyError("secret")), InternalError)
    assert "secret" not in failures.while_running(KeyError("secret")).sentence()


def test_errors_of_ours_stay_as_they_are() -> None:
    error = failures.too_large(5000, 2048)
    assert failures.while_running(error) is error
    assert error.message == "found 4 KB to store; expected at most 2 KB."


def test_half_a_surrogate_pair_is_the_clients_fault() -> None:
    with pytest.raises(UnicodeEncodeError) as caught:
        "\ud800".encode()
    assert failures.while_running(caught.value).status == 400


def test_a_full_file_is_recognised() -> None:
    assert failures.is_full(sqlite_error(sqlite3.SQLITE_FULL))
    assert not failures.is_full(sqlite_error(sqlite3.SQLITE_BUSY))
    assert not failures.is_full(OSError())


def test_a_locked_file_is_recognised() -> None:
    assert failures.is_locked(sqlite_error(sqlite3.SQLITE_BUSY))
    assert not failures.is_locked(sqlite_error(sqlite3.SQLITE_FULL))
    assert not failures.is_locked(OSError())


def test_each_refusal_names_what_still_works() -> None:
    for error in (failures.no_room(), failures.journal_held(), failures.closed(), failures.key_taken()):
        assert isinstance(error, GatewayError)
        assert error.status == 503
        assert error.hint
    for refusal in (failures.foreign(Path("x")), failures.newer(Path("x"), 2, 1), failures.no_journal(Path("x"))):
        assert isinstance(refusal, ConfigError)
        assert refusal.hint
