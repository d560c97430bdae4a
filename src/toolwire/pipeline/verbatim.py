"""The verbatim path: where client and back end speak one dialect, the bytes of the reply are sent unchanged while they are correct.

Every frame is decoded before it is sent, so telemetry and checks see the same events as on the translated path. At the first irregular
frame the encoder takes over, with the state of what was sent before. Frames that announce the end are held until the reply has ended, because
some servers announce an end and continue (H029), and frames of a call while the turn withholds some of it. Only the model name is
replaced, where the back end knows the model by another name.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TypeAlias

from msgspec import Struct

from ..backends.base import Backend
from ..calls.turn import Turn
from ..dialects.base import FrameRun, ResponseDecoder, ResponseEncoder, StreamDecoder, garbage
from ..dialects.shared.answer_in import MOST_RUNS, last_frames, split_frame
from ..dialects.shared.model_field import Renamer, model_places
from ..errors import GatewayError
from ..events import Event, Failed, Finished, PartDelta, PartEnded, PartStarted, Started
from ..types import JsonObject
from ..wire.exact_json import BadJson, decode, encode
from ..wire.sse import Frame, FrameTooLarge, SseReader, plain_frame
from .job import Job

MakeEncoder: TypeAlias = Callable[[], ResponseEncoder]


def why_translated(job: Job, backend: Backend) -> str:
    """Why the client's bytes cannot be sent as they are, "" where they can. backend: the one to open, which may wrap the job's."""
    if job.policy.verbatim == "never":
        return 'the back end is set to verbatim = "never"'
    if not backend.dialect:
        return "the back end answers in this process"
    if job.received.origin != backend.dialect:
        return f"the client speaks {job.received.origin}, the back end {backend.dialect}"
    return job.stale or ("" if job.request.wire else "the request has no bytes of a client")


def with_model(wire: bytes, before: str, model: str) -> bytes:
    """The body with another model name. Every other byte stays, unless the name occurs more than once or in another spelling."""
    if before == model:
        return wire
    places = model_places(wire)
    if len(places) == 1 and decode(wire[places[0]]) == before:
        return wire[: places[0].start] + encode(model) + wire[places[0].stop :]
    body = decode(wire)
    if "model" not in body:  # the path names it
        return wire
    body["model"] = model
    return encode(body)


class Batch(Struct):
    """The result of one read: bytes for the client, and the events that they mean."""

    wire: bytes
    events: list[Event]


class Translator:
    """Decoder, turn, encoder: every event is encoded in the client's dialect."""

    def __init__(self, decoder: ResponseDecoder | None, turn: Turn, make_encoder: MakeEncoder) -> None:
        self._decoder = decoder
        self._turn = turn
        self._make_encoder = make_encoder
        self.is_over = False
        self.has_content = False
        self.error: GatewayError | None = None
        self.took_over = ""
        self.begun = ""  # the back end's id of the answer, once it has started

    @cached_property
    def _encoder(self) -> ResponseEncoder:
        """Created when it is needed: an answer that is sent unchanged needs none."""
        return self._make_encoder()

    def feed(self, data: bytes) -> Batch:
        return self.send(self._decoder.feed(data)) if self._decoder is not None else Batch(b"", [])

    def close(self) -> Batch:
        """The reply has ended; a client that does not stream gets its body now."""
        batch = self._last_events()
        if self.error is None:
            batch.wire += self._encoder.close()
        return batch

    def _last_events(self) -> Batch:
        batch = self.send(self._decoder.close()) if self._decoder is not None else Batch(b"", [])
        return batch if self.is_over else self.fail(garbage("the back end's answer has no end."))

    def fail(self, error: GatewayError) -> Batch:
        return Batch(b"", []) if self.is_over else self.send([Failed(error=error)])

    def final(self) -> JsonObject | None:
        """The whole answer as the client has it, once its end is encoded."""
        return self._encoder.final()

    def send(self, events: list[Event]) -> Batch:
        events = self._turn.send(events)
        pieces = []
        for event in events:
            if self.is_over:
                break
            pieces.append(self._encoder.send(event))
            if type(event) is not PartDelta:
                self._look(event)
        return Batch(b"".join(pieces), events)

    def _look(self, event: Event) -> None:
        if type(event) is PartStarted:
            self.has_content = True
        elif type(event) is Finished:
            self.is_over = True
        elif type(event) is Started:
            self.begun = event.id
        elif type(event) is Failed:
            self.error = event.error
            self.is_over = True


class Tap(Translator):
    """Sends frames unchanged until the first irregular one; from there on it is a Translator."""

    def __init__(self, decoder: StreamDecoder, turn: Turn, make_encoder: MakeEncoder) -> None:
        super().__init__(None, turn, make_encoder)
        self._frames = decoder
        self._sse = SseReader()
        self._is_between = False  # the next byte starts a frame
        self._last: Frame | None = None
        self._sent: list[tuple[Frame, list[Event]]] = []  # what the encoder must know, if it takes over
        self._held: list[tuple[Frame, list[Event]]] = []  # with what the turn has made of them so far

    @cached_property
    def _encoder(self) -> ResponseEncoder:
        """With the state after the frames that were sent unchanged."""
        encoder = self._make_encoder()
        for frame, events in self._sent:
            for event in events:
                if type(event) is not PartDelta:
                    encoder.observe(event)
            encoder.passed(frame)
        return encoder

    def feed(self, data: bytes) -> Batch:
        if self._is_between and not self.took_over and data[-2:] == b"\n\n":
            delta = self._frames.match(data[:-2])
            if delta is not None:
                deltas = self._turn.deltas
                passes = deltas is None or deltas.passes(delta)
                return Batch(data, [delta]) if passes else self._checked(data, delta)
        output: list[bytes] = []
        seen: list[Event] = []
        try:
            for _ in range(MOST_RUNS):
                if (run := self._passing_run(data)) is not None:
                    output.append(data[: run.size])
                    seen.append(run.delta)
                    data = data[run.size :]
                first, data = split_frame(data)
                if first:
                    self._pass(first, output, seen)
                if not data:
                    break
                data = self._begun(data) if self._is_between else data
            else:
                self._pass(data, output, seen)
        except FrameTooLarge as fault:
            failed = self.fail(garbage(str(fault)))
            return Batch(b"".join([*output, failed.wire]), seen + failed.events)
        return Batch(b"".join(output), seen)

    def _begun(self, data: bytes) -> bytes:
        """Bytes that begin a frame, as the later steps see them."""
        return data

    def _passing_run(self, data: bytes) -> FrameRun | None:
        """The frames at the start of data that only extend a part and can be sent as they are."""
        if not self._is_between or self.took_over or self._held:
            return None
        run, deltas = self._frames.find_run(data), self._turn.deltas
        if run is None or not (deltas is None or deltas.passes(run.delta)):
            return None
        self._frames.extend(run)
        return run

    def _checked(self, data: bytes, delta: PartDelta) -> Batch:
        kept = self._turn.send([delta])
        if self._turn.changed:
            return Batch(self._take_over(self._turn.changed) + self._written(kept), kept)
        if not self._held and not self._turn.withholds:
            return Batch(data, kept)
        wire = [self._forward(frame, kept) for frame in self._sse.feed(data)]
        return Batch(b"".join(wire), kept)

    def close(self) -> Batch:
        output: list[bytes] = []
        seen: list[Event] = []
        self._pass_frames(last_frames(self._sse), output, seen)
        if not self.is_over:
            ending = self._ended(self._frames.close())
            output.append(ending.wire)
            seen += ending.events
        return Batch(b"".join(output), seen)

    def _ended(self, rest: list[Event]) -> Batch:
        """The connection ended without an end mark. In a dialect without such a mark, the held frames are complete."""
        if self.took_over or self._frames.irregular:
            wire = self._take_over(self._frames.irregular or "cut")
            ending = self.send(rest)
            return Batch(wire + ending.wire, ending.events)
        kept = self._turn.send(rest)
        if self._turn.changed:
            return Batch(self._take_over(self._turn.changed) + self._written(kept), kept)
        wire = b"".join(self._released())
        for event in kept:
            self._look(event)
        return Batch(wire, kept)

    def fail(self, error: GatewayError) -> Batch:
        wire = self._take_over("an error")
        batch = super().fail(error)
        return Batch(wire + batch.wire, batch.events)

    def _pass(self, data: bytes, output: list[bytes], seen: list[Event]) -> None:
        if self._is_between and (plain := plain_frame(data)) is not None:
            self._pass_frames([plain], output, seen)
            return
        self._pass_frames(self._sse.feed(data), output, seen)
        self._is_between = self._sse.is_idle

    def _pass_frames(self, frames: list[Frame], output: list[bytes], seen: list[Event]) -> None:
        decoder, turn = self._frames, self._turn
        for frame in frames:
            if self.is_over:
                break
            delta = decoder.match(frame.block)
            if delta is not None and not self.took_over and not self._held:
                deltas = turn.deltas
                if deltas is None or deltas.passes(delta):
                    output += (frame.block, b"\n\n")
                    seen.append(delta)
                    self._last = frame
                    continue
            events: list[Event] = decoder.read(frame) if delta is None else [delta]
            if self.took_over:
                batch = self.send(events)
                output.append(batch.wire)
                seen += batch.events
                continue
            was_waiting = turn.withholds
            kept = turn.send(events)
            seen += kept
            if decoder.irregular or turn.changed:
                if not decoder.irregular and not was_waiting:  # the held frames are correct, only the end is not
                    output += self._released()
                output.append(self._take_over(decoder.irregular or turn.changed))
                output.append(self._written(kept))
            else:
                output.append(self._forward(frame, kept))

    def _forward(self, frame: Frame, events: list[Event]) -> bytes:
        """The frame, after those that were held; nothing while it must be held itself."""
        if self._turn.withholds or (self._frames.is_ending and not self._frames.is_over):
            self._held.append((frame, events))
            return b""
        before = b"".join(self._released()) if self._held else b""
        self._last = frame
        if len(events) != 1 or type(events[0]) is not PartDelta:
            self._observe(frame, events)
        return before + frame.raw

    def _observe(self, frame: Frame, events: list[Event]) -> None:
        self._sent.append((frame, events))
        for event in events:
            if type(event) is not PartDelta:
                self._look(event)

    def _released(self) -> list[bytes]:
        """The held frames, unchanged."""
        held, self._held = self._held, []
        for frame, events in held:
            self._observe(frame, events)
            self._last = frame
        return [frame.raw for frame, _ in held]

    def _written(self, events: list[Event]) -> bytes:
        for event in events:
            self._look(event)
        return b"".join([self._encoder.send(event) for event in events])

    def _take_over(self, why: str) -> bytes:
        """From here on the encoder writes, starting with the events of the held frames."""
        if self.took_over:
            return b""
        self.took_over = why
        self._encoder.resume(self._last)
        held, self._held = self._held, []
        return b"".join([self._written(events) for _, events in held])


class RenamingTap(Tap):
    """Replaces the model name in each frame first, so that all later steps see only the client's name."""

    def __init__(self, decoder: StreamDecoder, turn: Turn, make_encoder: MakeEncoder, renamer: Renamer) -> None:
        super().__init__(decoder, turn, make_encoder)
        self._renamer = renamer

    def feed(self, data: bytes) -> Batch:
        return super().feed(self._begun(data) if self._is_between else data)

    def _begun(self, data: bytes) -> bytes:
        return self._renamer.begun(data)

    def _pass_frames(self, frames: list[Frame], output: list[bytes], seen: list[Event]) -> None:
        super()._pass_frames([self._renamer.frame(frame) for frame in frames], output, seen)


def tap_of(decoder: StreamDecoder, turn: Turn, make_encoder: MakeEncoder, renamer: Renamer | None) -> Tap:
    """A stream that keeps its model name does not pay for the replacement."""
    return Tap(decoder, turn, make_encoder) if renamer is None else RenamingTap(decoder, turn, make_encoder, renamer)


class BodyTap(Translator):
    """A whole body: sent unchanged if it is correct, else encoded again."""

    def __init__(
        self, decoder: ResponseDecoder, turn: Turn, make_encoder: MakeEncoder, renamer: Renamer | None = None
    ) -> None:
        super().__init__(decoder, turn, make_encoder)
        self._body: list[bytes] = []
        self._events: list[Event] = []
        self._whole = decoder
        self._renamer = renamer

    def feed(self, data: bytes) -> Batch:
        self._body.append(data)
        events = self._whole.feed(data)
        return self.send(events) if events else Batch(b"", events)

    def close(self) -> Batch:
        """The encoder gets the events only if the body must be encoded again."""
        batch = self._last_events()
        self.took_over = self._whole.irregular or self._turn.changed
        if self.error is None and not self.took_over:
            batch.wire = self._unchanged()
        elif batch.events:  # else fail() has encoded them
            batch.wire = self._encode_events()
            if self.error is None:
                batch.wire += self._encoder.close()
        return batch

    def fail(self, error: GatewayError) -> Batch:
        batch = super().fail(error)
        if batch.events:
            batch.wire = self._encode_events()
        return batch

    def _encode_events(self) -> bytes:
        events, self._events = self._events, []
        return b"".join([self._encoder.send(event) for event in events])

    def send(self, events: list[Event]) -> Batch:
        events = self._turn.send(events)
        for event in events:
            if self.is_over:
                break
            self._events.append(event)
            if type(event) is not PartDelta and type(event) is not PartEnded:
                self._look(event)
        return Batch(b"", events)

    def final(self) -> JsonObject | None:
        if self.took_over or self.error is not None:
            return super().final()
        value = decode(self._unchanged()) if self._renamer is not None else getattr(self._whole, "value", None)
        return value if isinstance(value, dict) else None

    def _unchanged(self) -> bytes:
        body = b"".join(self._body)
        return body if self._renamer is None else self._renamer.body(body)


class Untouched(BodyTap):
    """A body that is no answer yet, because the back end has only queued the request. It is sent unchanged."""

    def close(self) -> Batch:
        self.is_over = True
        return Batch(self._unchanged(), [])

    def final(self) -> JsonObject | None:
        try:
            value = decode(self._unchanged())
        except BadJson:
            return None
        return value if isinstance(value, dict) else None
