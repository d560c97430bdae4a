"""How much of it a back end takes: refused here in the asker's words, before it travels to an error of the back end's."""

from __future__ import annotations

from collections.abc import Callable

from ....errors import BadRequest
from ....profiles import Profile
from ....types import Json, Media, Message, Request, ToolResult
from .data import size_of

# Where a client of each dialect finds its messages, and the content of a message and of a result.
_PLACES = {
    "chat": ("messages", "content", "content"),
    "responses": ("input", "content", "output"),
    "messages": ("messages", "content", "content"),
}


class Tally:
    """Counts the media of one request against the limits of one back end; a limit of 0 is none."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._images = 0

    def add(self, media: Media, place: Callable[[], str]) -> None:
        """Every medium that is about to be sent; its place in the client's request is looked up only for a refusal."""
        profile = self._profile
        if media.kind == "image":
            self._images += 1
            if 0 < profile.max_images < self._images:
                raise self._refused(f"the request has more than {profile.max_images} images", "Send fewer.", place())
        limit = profile.max_image_bytes if media.kind == "image" else profile.max_file_bytes
        if media.data is not None and 0 < limit < (size := size_of(media)):
            found = f"the {media.kind} has {size} bytes, and one may have {limit}"
            raise self._refused(found, "Send a smaller one.", place())

    def _refused(self, found: str, hint: str, where: str) -> BadRequest:
        message = f"{found} at the back end ({self._profile.name})."
        return BadRequest(message, code="media_too_large", where=where, hint=hint)


def check_size(body: bytes, profile: Profile) -> bytes:
    """The body itself, if the back end takes one of its size."""
    limit = profile.max_request_bytes
    if 0 < limit < len(body):
        raise BadRequest(
            f"the request for the back end ({profile.name}) has {len(body)} bytes, and may have {limit}.",
            status=413,
            code="request_too_large",
            hint="Send fewer or smaller images and files.",
        )
    return body


def place_of(request: Request, media: Media, fallback: str) -> str:
    """Where the client wrote it, in the words of its dialect; a message of an earlier request has only our own number."""
    for message in request.messages:
        for index, part in enumerate(message.parts):
            inner = _index(part.parts, media) if isinstance(part, ToolResult) else -1
            if part is media or inner >= 0:
                return _place(request, message, index, inner) or fallback
    return fallback


def _place(request: Request, message: Message, index: int, inner: int) -> str:
    if request.origin not in _PLACES or message.source is None:
        return ""
    listed, content, result = _PLACES[request.origin]
    if message.is_head:
        return f"system[{index}]" if request.origin == "messages" else ""
    items = request.source.get(listed)
    number = _index(items, message.source.value) if isinstance(items, list) else -1
    if number < 0:
        return ""
    place = f"{listed}[{number}]"
    if inner < 0 or request.origin == "messages":  # only there does a result share its message with other parts
        place += f".{content}[{index}]"
    return place if inner < 0 else f"{place}.{result}[{inner}]"


def _index(items: Json, wanted: object) -> int:
    """The place of this very object."""
    return next((number for number, item in enumerate(items) if item is wanted), -1)
