"""What a medium is: by its first bytes, else by what was declared, else by its name."""

from __future__ import annotations

import re
from codecs import getincrementaldecoder

PDF = "application/pdf"
UNKNOWN = "application/octet-stream"

_FORM = re.compile(r"[a-z0-9][a-z0-9.+-]{0,60}/[a-z0-9][a-z0-9.+_-]{0,120}")
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
UTF16 = (b"\xff\xfe", b"\xfe\xff")
_GENERIC = frozenset({"", UNKNOWN, "binary/octet-stream", "application/x-download", "application/binary"})
_ALIASES = {
    "image/jpg": "image/jpeg",
    "image/pjpeg": "image/jpeg",
    "image/x-png": "image/png",
    "image/x-ms-bmp": "image/bmp",
    "application/x-pdf": PDF,
    "audio/mpeg": "audio/mp3",
    "audio/mpeg3": "audio/mp3",
    "audio/x-mp3": "audio/mp3",
    "audio/wave": "audio/wav",
    "audio/x-wav": "audio/wav",
    "audio/vnd.wave": "audio/wav",
}
_STARTS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", PDF),
    (b"\xef\xbb\xbf%PDF-", PDF),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"ID3", "audio/mp3"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
)
_BRANDS = {b"heic": "image/heic", b"heix": "image/heic", b"mif1": "image/heif", b"avif": "image/avif"}
_RIFFS = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}
_TEXTUAL = frozenset(
    [
        "application/json",
        "application/x-ndjson",
        "application/jsonl",
        "application/xml",
        "application/javascript",
        "application/ecmascript",
        "application/typescript",
        "application/x-typescript",
        "application/x-javascript",
        "application/x-httpd-php",
        "application/x-python",
        "application/x-python-code",
        "application/x-sh",
        "application/x-shellscript",
        "application/x-yaml",
        "application/yaml",
        "application/toml",
        "application/sql",
        "application/graphql",
        "application/x-tex",
        "application/x-subrip",
        "application/x-patch",
    ]
)
_DOTTED = {
    "pdf": PDF,
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "svg": "image/svg+xml",
    "bmp": "image/bmp",
    "tif": "image/tiff",
    "tiff": "image/tiff",
    "heic": "image/heic",
    "avif": "image/avif",
    "wav": "audio/wav",
    "mp3": "audio/mp3",
    "csv": "text/csv",
    "tsv": "text/tab-separated-values",
    "md": "text/markdown",
    "html": "text/html",
    "json": "application/json",
    "xml": "application/xml",
    "doc": "application/msword",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "xls": "application/vnd.ms-excel",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "ppt": "application/vnd.ms-powerpoint",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "odt": "application/vnd.oasis.opendocument.text",
    "rtf": "application/rtf",
    "zip": "application/zip",
}
_PLAIN_DOTTED = re.compile(
    "txt|text|log|ini|cfg|conf|env|toml|ya?ml|jsonl|ndjson|[mc]?jsx?|tsx?|pyi?|rb|rs|go|java|kt|c|h|cc|cpp|hpp|cs|swift|php|pl"
    "|lua|r|sql|sh|bash|zsh|fish|ps1|bat|diff|patch|tex|rst|adoc|s?css|less|vue|svelte|graphql|proto|srt|vtt|ipynb|gradle"
    "|properties|lock"
)
_ENDINGS = {mime: dot for dot, mime in reversed(_DOTTED.items())} | {"text/plain": "txt"}
OFFICE = frozenset(_DOTTED[dot] for dot in ("doc", "docx", "xls", "xlsx", "ppt", "pptx", "odt", "rtf"))


def normalize_type(mime: str) -> str:
    """A declared type without parameters, in the form everybody knows; "" if it is none."""
    mime = mime[:200].partition(";")[0].strip().lower()
    return _ALIASES.get(mime, mime) if _FORM.fullmatch(mime) else ""


def type_of(declared: str, name: str, head: bytes) -> str:
    """The type of data that begins with these bytes; a declared text type wins if the data looks like text."""
    declared = normalize_type(declared)
    if is_text(declared) and looks_like_text(head):
        return declared
    if found := sniff(head):
        return found
    if is_text(declared) and b"\0" in head:
        return UNKNOWN
    if declared not in _GENERIC:
        return declared
    named = type_by_name(name)
    if named and not (is_text(named) and not looks_like_text(head)):
        return named
    return "text/plain" if looks_like_text(head) else UNKNOWN


def sniff(head: bytes) -> str:
    """The type that only these first bytes can mean; "" if there is none."""
    for start, mime in _STARTS:
        if head.startswith(start):
            return mime
    if head[:4] == b"RIFF":
        return _RIFFS.get(head[8:12], "")
    if head[4:8] == b"ftyp":
        return _BRANDS.get(head[8:12], "")
    if head[:2] == b"BM" and head[6:10] == b"\0\0\0\0" and len(head) >= 14:
        return "image/bmp"
    return ""


def type_by_name(name: str) -> str:
    dot = name[-20:].rpartition(".")[2].lower() if "." in name[-20:] else ""
    return _DOTTED.get(dot) or ("text/plain" if _PLAIN_DOTTED.fullmatch(dot) else "")


def ending_of(mime: str) -> str:
    """The usual end of a file name of this type, with its dot; "" if there is none."""
    dot = _ENDINGS.get(mime) or ("txt" if is_text(mime) else "")
    return f".{dot}" if dot else ""


def is_text(mime: str) -> bool:
    return mime.startswith("text/") or mime in _TEXTUAL or mime.endswith(("+json", "+xml", "+yaml"))


def looks_like_text(head: bytes) -> bool:
    """UTF-8 (or UTF-16 with a byte order mark) without control characters; the end may be cut anywhere."""
    if head.startswith(UTF16):
        return True
    if _CONTROL.search(head):
        return False
    try:
        getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True
