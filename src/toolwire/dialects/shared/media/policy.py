"""Media for a back end of another dialect.

An image or file is sent in the form that the dialect has for it. If there is none, a text file is written into the conversation, and any
other medium is replaced by a placeholder that names it, with the reason as a loss. The request is refused if the data is invalid or
larger than the back end accepts. Nothing is fetched from a URL.

Between a client and a back end of the same dialect, media are neither changed nor checked.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from ....errors import BadRequest
from ....profiles import Profile
from ....types import Json, Loss, Media, Message, Opaque, Part, Request, Text, ToolResult
from ..requests import is_hint, is_idle
from .data import BadMedia, normalize, size_of, text_in
from .text import describe, placeholder, render
from .types import PDF, is_text

# Where a client of each dialect finds its messages, and the content of a message and of a result.
_PLACES = {
    "chat": ("messages", "content", "content"),
    "responses": ("input", "content", "output"),
    "messages": ("messages", "content", "content"),
}
_INLINE = 400_000  # characters of a text file that are written into the conversation


def check_size(body: bytes, profile: Profile) -> bytes:
    """The body, if it is not larger than the back end accepts."""
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
    """The position in the client's request, in the terms of its dialect; fallback for messages of earlier requests."""
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


def has_result_media(message: Message) -> bool:
    """Whether a result in it has an image or a file."""
    return any(
        isinstance(piece, Media) for part in message.parts if isinstance(part, ToolResult) for piece in part.parts
    )


def _index(items: Json, wanted: object) -> int:
    """The index of this object, by identity."""
    return next((number for number, item in enumerate(items) if item is wanted), -1)


class MediaSupport(Struct, frozen=True, kw_only=True):
    """The media that a dialect can express. The profile of a back end says which of them it accepts.

    has_any_url: files of any type may be given by URL, not only PDFs.
    """

    file_types: frozenset[str] = frozenset({PDF})
    has_text_files: bool = False
    image_schemes: frozenset[str] = frozenset({"http", "https"})
    file_schemes: frozenset[str] = frozenset()
    has_any_url: bool = False
    audio_types: frozenset[str] = frozenset()
    has_detail: bool = False
    named_files: frozenset[str] = frozenset()  # where a file may have a name: "data", "url"


class MediaAdapter:
    """Adapts the media of one request to one back end."""

    def __init__(
        self, request: Request, profile: Profile, dialect: str, support: MediaSupport, losses: list[Loss]
    ) -> None:
        self.is_own = request.origin == dialect
        self._request = request
        self._profile = profile
        self._dialect = dialect
        self._support = support
        self._losses = losses
        self._images = 0

    def adapt_all(self, parts: Iterable[Part], where: str, only_text: str = "") -> list[Part]:
        """The same parts, with every medium and every foreign part in a form that this dialect can express."""
        given: list[Part] = []
        for part in parts:
            given += self.adapt(part, where, only_text)
        return given

    def adapt(self, part: Part, where: str, only_text: str = "") -> list[Part]:
        """only_text: why only text is allowed here, "" if other parts are."""
        if isinstance(part, Media):
            return [part] if self.is_own else list(self._medium(part, where, only_text))
        if isinstance(part, Opaque) and part.dialect != self._dialect:
            pieces = render(part, where, self._losses)
            return self.adapt_all(pieces, where, only_text)
        return [part]

    def _medium(self, given: Media, where: str, only_text: str) -> list[Text | Media]:
        try:
            media = normalize(given)
        except BadMedia as fault:
            raise BadRequest(str(fault), code="invalid_media", where=place_of(self._request, given, where)) from None
        pieces = self._members(media, where)
        why = only_text or self._objection(media)
        if not why:
            if media.name and not self._is_named(media):
                self._losses.append(Loss("media.name", where, "this dialect has no names for it"))
            self._check_limits(media, given, where)
            return [*pieces, media]
        if media.kind == "file" and media.data is not None and is_text(media.mime):
            return [*pieces, Text(text=self._inlined(media, where))]
        return [*pieces, Text(text=placeholder(media, where, self._losses, why))]

    def _check_limits(self, media: Media, given: Media, where: str) -> None:
        """Refuse what the back end would refuse; a limit of 0 is none."""
        profile, found, hint = self._profile, "", ""
        if media.kind == "image":
            self._images += 1
            if 0 < profile.max_images < self._images:
                found, hint = f"the request has more than {profile.max_images} images", "Send fewer."
        limit = profile.max_image_bytes if media.kind == "image" else profile.max_file_bytes
        if not found and media.data is not None and 0 < limit < (size := size_of(media)):
            found, hint = f"the {media.kind} has {size} bytes, and one may have {limit}", "Send a smaller one."
        if found:
            message = f"{found} at the back end ({profile.name})."
            place = place_of(self._request, given, where)
            raise BadRequest(message, code="media_too_large", where=place, hint=hint)

    def _objection(self, media: Media) -> str:
        """Why it cannot be sent as it is; "" if it can."""
        if media.file_id is not None:
            return "a file id is known only to the provider that gave it"
        if media.url is not None:
            return self._against_url(media, media.url.partition(":")[0].lower())
        support, mime = self._support, media.mime
        if media.kind == "image":
            return "" if mime in self._profile.image_types else f"{mime} is no type of image that this back end takes"
        if media.kind == "audio":
            return "" if mime in support.audio_types else f"this dialect has no place for {mime}"
        if not self._profile.has_files:
            return "this back end takes no files"
        if is_text(mime) and support.has_text_files:
            return "" if media.data else "it is empty"
        return "" if mime in support.file_types else f"this dialect has no place for {mime}"

    def _against_url(self, media: Media, scheme: str) -> str:
        support = self._support
        schemes = support.image_schemes if media.kind == "image" else support.file_schemes
        if media.kind == "audio" or not schemes:
            return "this dialect takes it as data only, and nothing is fetched here"
        if scheme not in schemes:
            return f"only {' and '.join(sorted(schemes))} addresses are taken"
        if media.kind == "file" and not self._profile.has_files:
            return "this back end takes no files"
        if media.kind == "file" and media.mime not in ("", PDF) and not support.has_any_url:
            return f"this dialect takes no {media.mime} by its address"
        return ""

    def _members(self, media: Media, where: str) -> list[Text | Media]:
        """Members of the medium that this dialect does not have; text for the model becomes a text part."""
        pieces: list[Text | Media] = []
        if media.detail not in (None, "auto") and not self._support.has_detail:
            self._losses.append(Loss("media.detail", where, "this dialect has no such member"))
        foreign = [(dialect, members) for dialect, members in media.extra.items() if dialect != self._dialect]
        for name, value in {
            name: value
            for dialect, members in foreign
            for name, value in members.items()
            if not is_idle(dialect, name, value) and not is_hint(self._dialect, name, value)
        }.items():
            if name == "context" and isinstance(value, str) and value:
                pieces.append(Text(text=f"[about {describe(media)}] {value}"))
            elif value != {"enabled": False}:
                self._losses.append(Loss(f"media.{name[:60]}", where, "this dialect has no such member"))
        return pieces

    def _is_named(self, media: Media) -> bool:
        place = "url" if media.url is not None else "data"
        return media.kind == "file" and place in self._support.named_files

    def _inlined(self, media: Media, where: str) -> str:
        """The text of a file between two lines that name it."""
        text, why = text_in(media) or "", "written as text"
        if len(text) > _INLINE:
            why = f"written as text, {len(text) - _INLINE} characters at its end dropped"
            text = f"{text[:_INLINE]}\n[{len(text) - _INLINE} more characters not shown]"
        self._losses.append(Loss("media.file", where, why))
        name = describe(replace(media, data=None))
        return f"[file: {describe(media)}]\n{text}\n[end of file: {name}]"
