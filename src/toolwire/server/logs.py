"""One log line per request, written by a thread of its own, so that a full pipe behind stderr never blocks the gateway."""

from __future__ import annotations

import logging
import os
import re
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TextIO

from ..calls.validation import CallMade, LocalCall
from ..errors import quote
from ..telemetry import Record
from ..telemetry.loss_names import features, is_adapted
from ..telemetry.prices import dollars
from ..telemetry.redaction import Redaction
from ..wire.exact_json import encode

_MAX_LINES = 10_000
_PAUSE = 0.05
_MAX_LOSSES = 40
_REDACTION = Redaction()
_SEPARATOR = re.compile(r'[ "=,]')


class Log:
    """Lines wait in a bounded list. Above the bound they are dropped, and their number is logged."""

    def __init__(self, level: str = "info", form: str = "text", target: TextIO | None = None) -> None:
        self._is_quiet = level in ("warning", "error")
        self._has_errors_only = level == "error"
        self._is_debug = level in ("debug", "trace")
        self._is_json = form == "json"
        self._target = target or sys.stderr
        self._lines: list[str] = []
        self._dropped = 0
        self._wake = threading.Event()
        self._pause = threading.Event()  # set only at the end: lines gather for a moment before they are written
        self._lock = threading.Lock()
        self._is_over = False
        self._thread = threading.Thread(target=self._run, name="toolwire-log", daemon=True)
        self._thread.start()

    def requests(self, records: Iterable[Record]) -> None:
        """The lines of requests that have ended."""
        lines: list[str] = []
        for record in records:
            if self._is_debug:
                for words in _details(record):
                    lines += self._lines_of("debug", words, record.request_id)
            if self._is_quiet:
                is_good = record.outcome == "ok" and not record.tally.unknown_names
                if is_good or self._has_errors_only:
                    continue
            lines.append(_json(record) if self._is_json else _text(record))
            for local in record.local:
                level = "info" if local.outcome == "ok" else "warning"
                lines += self._lines_of(level, _local(local, record), record.request_id)
        self._put(lines)

    def say(self, level: str, words: str, request_id: str = "") -> None:
        self._put(self._lines_of(level, words, request_id))

    def _lines_of(self, level: str, words: str, request_id: str) -> list[str]:
        """One line, or none if the level is not logged."""
        if (self._is_quiet and level == "info") or (level == "debug" and not self._is_debug):
            return []
        if self._has_errors_only and level == "warning":
            return []
        if self._is_json:
            return [encode({"time": _now(), "level": level, "request": request_id, "message": words}).decode()]
        return [" ".join(filter(None, (_now(), level, request_id, words)))]

    def handler(self) -> logging.Handler:
        return _Handler(self)

    def close(self) -> None:
        self._is_over = True
        self._pause.set()
        self._wake.set()
        self._thread.join(timeout=1.0)

    def _put(self, lines: list[str]) -> None:
        if not lines:
            return
        with self._lock:
            room = max(0, _MAX_LINES - len(self._lines))
            self._lines += lines[:room]
            self._dropped += max(0, len(lines) - room)
        if not self._wake.is_set():
            self._wake.set()

    def _run(self) -> None:
        while not self._is_over:
            self._wake.wait()
            self._pause.wait(_PAUSE)
            self._wake.clear()
            self._flush()
        self._flush()

    def _flush(self) -> None:
        with self._lock:
            lines, self._lines = self._lines, []
            dropped, self._dropped = self._dropped, 0
        lost = dropped + len(lines)
        if dropped:
            lines.append(f"{_now()} warning {dropped} log lines were dropped")
        if lines:
            try:
                self._write("\n".join(lines) + "\n")
            except (OSError, ValueError):  # a full disk, or a reader that is gone; both may pass
                with self._lock:
                    self._dropped += lost

    def _write(self, text: str) -> None:
        try:
            number = self._target.fileno()
        except OSError:  # it has none
            self._target.write(text)
            return
        # Past sys.stderr: a thread that waits in there when the process ends holds a lock, and the interpreter aborts.
        data = text.encode("utf-8", "backslashreplace")
        while data:
            try:
                data = data[os.write(number, data) :]
            except BlockingIOError:  # full, and another process has made it non-blocking for all that share it
                time.sleep(_PAUSE)


class _Handler(logging.Handler):
    """What other libraries log, among our own lines."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log = log
        self.setFormatter(logging.Formatter("%(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        self._log.say(record.levelname.lower(), self.format(record))


def _now() -> str:
    return _clock(int(time.time()))


@lru_cache(maxsize=4)
def _clock(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(second))


def _text(record: Record) -> str:
    words = [
        _now(),
        "info" if record.outcome == "ok" else "warning",
        record.request_id,
        record.dialect,
        *([f"path={_word(record.path)}"] if record.path else []),
        *([f"key={_word(record.key)}"] if record.key else []),
        f"model={_word(record.model)}",
        f"backend={record.backend or '-'}",
        str(record.status),
        record.outcome,
        f"{(record.ended - record.started) * 1000:.1f}ms",
    ]
    if record.sent_model and record.model not in (record.sent_model, f"{record.backend}/{record.sent_model}"):
        words.append(f"sent-as={_word(record.sent_model)}")
    if record.hops:
        words.append(f"fallback={_word(','.join(record.hops))}")
    if record.is_verbatim:
        words.append("verbatim" if not record.took_over else f'verbatim-until="{record.took_over}"')
    if calls := record.tally.made + len(record.local):
        words.append(f"calls={calls}")
    if record.tally.invalid:
        words.append(f"invalid={record.tally.invalid}")
    if record.tally.calls and (names := record.tally.unknown_names):
        words.append("unknown-tools=" + ",".join(map(_word, names)))
    if record.usage is not None:
        words.append(f"tokens={record.usage.input}+{record.usage.output}")
    if record.cost is not None:
        words.append(f"cost={dollars(record.cost):.6f}")
    if adapted := features(record.losses, adapted=True):
        words.append("adapted=" + ",".join(map(_word, adapted[:12])))
    if lost := features(record.losses, adapted=False):
        words.append("lost=" + ",".join(map(_word, lost[:12])))
    if record.error:
        words.append(f"error={record.error}")
    if record.message:
        words.append(f'message="{_message(record)}"')
    return " ".join(words)


def _details(record: Record) -> Iterator[str]:
    """What log = "debug" adds to the line of a request."""
    if record.route:
        yield f"route {_word(f'{record.backend}/{record.sent_model}')}: {record.route}"
    if record.translated:
        yield f"the request was translated: {record.translated}"
    for loss in record.losses[:_MAX_LOSSES]:
        effect = "adapted" if is_adapted(loss.feature) else "lost"
        yield f"{effect} {_word(loss.feature)} at {_word(loss.where)}: {quote(loss.why)[1:-1]}"
    yield from map(_call, record.tally.calls)


def _message(record: Record) -> str:
    """Without anything that looks like a key: providers quote parts of what they refuse."""
    return _REDACTION.text(quote(record.message)[1:-1].replace('"', "'"))


def _call(call: CallMade) -> str:
    return f"call {_word(call.name)} id={_word(call.id)} {call.outcome}"


def _local(call: LocalCall, record: Record) -> str:
    confined = f", {call.confinement}" if call.confinement else ""
    return f"ran {call.name} on this machine for {record.backend}: {call.outcome}, {call.seconds:.1f} s{confined}"


def _word(text: str) -> str:
    """One plain word stays as it is. Other values are quoted, so that a name from a client cannot imitate another line or member."""
    return text if text.isprintable() and not _SEPARATOR.search(text) else quote(text)


def _json(record: Record) -> str:
    return encode(
        {
            "time": _now(),
            "level": "info" if record.outcome == "ok" else "warning",
            "request": record.request_id,
            "key": record.key or None,
            "path": record.path or None,
            "dialect": record.dialect,
            "model": record.model,
            "backend": record.backend,
            "sent_model": record.sent_model or None,
            "status": record.status,
            "outcome": record.outcome,
            "seconds": round(record.ended - record.started, 6),
            "first_byte": round(record.first_byte - record.started, 6) if record.first_byte else None,
            "stream": record.is_stream,
            "verbatim": record.is_verbatim,
            "took_over": record.took_over or None,
            "fallback": record.hops or None,
            "calls": record.tally.made + len(record.local),
            "invalid_calls": record.tally.invalid,
            "unknown_tools": list(record.tally.unknown_names) or None,
            "tokens": [record.usage.input, record.usage.output] if record.usage is not None else None,
            "cost": None if record.cost is None else dollars(record.cost),
            "losses": sorted({loss.feature for loss in record.losses})[:40],
            "adapted": features(record.losses, adapted=True)[:40],
            "error": record.error or None,
            "message": _message(record) if record.message else None,
        }
    ).decode()
