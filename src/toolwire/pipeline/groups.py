"""Groups of models: in which order the models of a group are tried, and which back ends are left alone for a while.

- A conversation stays with the model that answered it, so that prompt caches are hit.
- A new conversation gets the models in the order of the list, by weights, or by the measured quality of their tool calls. Weights are
  applied to a hash of the conversation, so that all processes choose the same model for it.
- Each back end has a circuit. After several failures in a row it is open: the models of this back end are tried last. After some time it
  is half open: one request probes the back end, and its outcome closes or opens the circuit. Other requests do not wait for the probe.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b

from msgspec import Struct

from ..config.values import ModelGroup
from ..errors import GatewayError, UpstreamError
from ..types import Request, Text
from .fallback import reason_of

_FAILURES = 3  # in a row, after which a circuit opens
_OPEN_SECONDS = 30.0
_MAX_STICKY = 10_000
_STICKY_SECONDS = 3600.0


class Circuit(Struct):
    """Of one back end. retry_at: 0 while the circuit is closed."""

    failures: int = 0
    retry_at: float = 0.0
    is_probed: bool = False

    def is_open(self, now: float) -> bool:
        return bool(self.retry_at) and (now < self.retry_at or self.is_probed)


class ModelGroups:
    """backend_of: the back end of a model, "" if it has none. quality: of the tool calls of a model, from 0 to 1; None if it is unknown."""

    def __init__(
        self,
        groups: Mapping[str, ModelGroup],
        backend_of: Callable[[str], str] = lambda model: model.partition("/")[0],
        quality: Callable[[str], float | None] = lambda model: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.groups = dict(groups)
        self._backend_of = backend_of
        self._quality = quality
        self._clock = clock
        self._circuits: dict[str, Circuit] = {}
        self._sticky: OrderedDict[bytes, tuple[str, float]] = OrderedDict()

    def candidates(self, group: ModelGroup, request: Request, owner: str) -> list[str]:
        """The models of the group, the best first. request: with its whole history."""
        conversation, now = _conversation(request, owner), self._clock()
        last = self._sticky.get(conversation, ("", 0.0))
        sticky = last[0] if last[1] > now else ""
        ordered = self._ordered(group, conversation)
        return sorted(ordered, key=lambda model: (self._circuit(model).is_open(now), model != sticky))

    @contextmanager
    def attempt(self, group: ModelGroup, model: str) -> Iterator[None]:
        """While a model of the group has the request: the outcome counts for the circuit of its back end."""
        circuit = self._circuit(model)
        is_probe = bool(circuit.retry_at) and not circuit.is_open(self._clock())
        circuit.is_probed = circuit.is_probed or is_probe
        try:
            yield
        except GatewayError as error:
            if reason_of(error) in group.fallback_on:
                self._failed(circuit)
            elif isinstance(error, UpstreamError):  # it refused this request, so it works
                _close(circuit)
            raise
        else:
            _close(circuit)
        finally:
            if is_probe:
                circuit.is_probed = False

    def succeeded(self, model: str, request: Request, owner: str) -> None:
        """The conversation stays with this model."""
        conversation = _conversation(request, owner)
        self._sticky[conversation] = model, self._clock() + _STICKY_SECONDS
        self._sticky.move_to_end(conversation)
        if len(self._sticky) > _MAX_STICKY:
            self._sticky.popitem(last=False)

    def _ordered(self, group: ModelGroup, conversation: bytes) -> list[str]:
        if group.weights:
            ranks = {
                model: _rank(weight, conversation, model)
                for model, weight in zip(group.models, group.weights, strict=True)
            }
            return sorted(group.models, key=lambda model: -ranks[model])
        if group.order == "quality":
            return sorted(group.models, key=self._rank_by_quality)
        return list(group.models)

    def _rank_by_quality(self, model: str) -> float:
        """Rounded, because a difference of less than a percent is no reason to move new conversations."""
        quality = self._quality(model)
        return -round(1.0 if quality is None else quality, 2)

    def _circuit(self, model: str) -> Circuit:
        return self._circuits.setdefault(self._backend_of(model), Circuit())

    def _failed(self, circuit: Circuit) -> None:
        circuit.failures += 1
        if circuit.failures >= _FAILURES:
            circuit.retry_at = self._clock() + _OPEN_SECONDS


NO_GROUPS = ModelGroups({})


def _close(circuit: Circuit) -> None:
    circuit.failures, circuit.retry_at = 0, 0.0


def _rank(weight: float, conversation: bytes, model: str) -> float:
    """Weighted rendezvous hashing: of many conversations each model ranks first in the share of its weight."""
    digest = blake2b(model.encode("utf-8", "surrogatepass"), key=conversation, digest_size=8).digest()
    return weight / -math.log((int.from_bytes(digest) + 1) / (2**64 + 1))


def _conversation(request: Request, owner: str) -> bytes:
    """The same for all turns of a conversation: by its instructions and its first user message."""
    digest = blake2b(f"{owner}\0{request.model}".encode("utf-8", "surrogatepass"), digest_size=16)
    for message in request.messages:
        for part in message.parts:
            if isinstance(part, Text):
                digest.update(part.text.encode("utf-8", "surrogatepass"))
        if message.role == "user":
            break
    return digest.digest()
