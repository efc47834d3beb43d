"""SPDY/3.1 frames, as far as kubectl and container runtimes use them.

It does no I/O: it turns received bytes into events, and returns the bytes to send. No Python
library for SPDY is maintained, and the protocol is obsolete, so this is no more than streams with
headers and data, pings and resets. Either side may use it; a client's streams have odd numbers.
Flow-control windows are neither kept nor enforced, as in Kubernetes' own implementation
(moby/spdystream).

Source: the SPDY Protocol, draft 3.1 (frames and the dictionary of 2.6.10.1).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kcm import errors

_VERSION = 3
_SYN_STREAM, _SYN_REPLY, _RST_STREAM, _SETTINGS = 1, 2, 3, 4
_PING, _HEADERS, _WINDOW_UPDATE = 6, 8, 9
_FIN = 0x01
_MOST = 1 << 20  # the most bytes of a frame
_MOST_BYTES, _MOST_HEADERS = 16 * 1024, 64  # of the headers of a stream, unpacked
REFUSED_STREAM, CANCEL = 3, 5  # why a stream is reset

_WORDS = (
    *str.split(
        "options head post put delete trace accept accept-charset accept-encoding "
        "accept-language accept-ranges age allow authorization cache-control connection "
        "content-base content-encoding content-language content-length content-location "
        "content-md5 content-range content-type date etag expect expires from host if-match "
        "if-modified-since if-none-match if-range if-unmodified-since last-modified location "
        "max-forwards pragma proxy-authenticate proxy-authorization range referer retry-after "
        "server te trailer transfer-encoding upgrade user-agent vary via warning "
        "www-authenticate method get status"
    ),
    "200 OK", "version", "HTTP/1.1", "url", "public", "set-cookie", "keep-alive", "origin",
)  # fmt: skip
_TAIL = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request"
    "401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented"
    "503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 "
    "Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,"
    "application/xml,application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age="
    "gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)
DICTIONARY = b"".join(struct.pack(">I", len(w)) + w.encode() for w in _WORDS) + _TAIL.encode()
"""The compression dictionary for headers, built from the words of the specification."""


class SpdyError(errors.KcmError):
    """the other side does not speak SPDY/3.1"""


@dataclass(frozen=True)
class StreamOpened:
    """The client has opened a stream. The names of headers are in lower case."""

    stream: int
    headers: Mapping[str, str]
    ended: bool = False  # the client will send no data


@dataclass(frozen=True)
class Data:
    """Data of a stream. `ended` is set with the last of it."""

    stream: int
    data: bytes
    ended: bool


@dataclass(frozen=True)
class StreamReset:
    """The client has reset a stream."""

    stream: int


@dataclass(frozen=True)
class SpdyPing:
    """A ping, which has to be answered with the frame of `SpdySession.pong`."""

    number: int


@dataclass(frozen=True)
class SpdyGoneAway:
    """The client will open no more streams."""


Event = StreamOpened | Data | StreamReset | SpdyPing | SpdyGoneAway


class SpdySession:
    """One connection. Raises SpdyError for anything that is not SPDY; it is unusable after that."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._unpack = zlib.decompressobj(zdict=DICTIONARY)
        self._pack = zlib.compressobj(zdict=DICTIONARY)
        self._newest = 0  # the stream that the client has opened last
        self._next = 1  # the number of the next stream of our own

    def receive(self, data: bytes) -> Iterator[Event]:
        """Yields the events of the frames that these bytes complete."""
        self._buffer += data
        while len(self._buffer) >= 8:
            size = int.from_bytes(self._buffer[5:8], "big")
            if size > _MOST:
                raise SpdyError(f"a frame of {size} bytes is too large")
            if len(self._buffer) < 8 + size:
                return
            head, payload = bytes(self._buffer[:8]), bytes(self._buffer[8 : 8 + size])
            del self._buffer[: 8 + size]
            event = self._event(head, payload)
            if event is not None:
                yield event

    def _event(self, head: bytes, payload: bytes) -> Event | None:
        first, flags = struct.unpack(">IB", head[:5])
        if not first & 0x8000_0000:
            return Data(first, payload, bool(flags & _FIN))
        version, kind = (first >> 16) & 0x7FFF, first & 0xFFFF
        if version != _VERSION:
            raise SpdyError(f"version {version} is not SPDY/3.1")
        try:
            return self._control(kind, flags, payload)
        except (struct.error, zlib.error, UnicodeDecodeError) as error:
            raise SpdyError(f"a frame of type {kind} cannot be read: {error}") from None

    def _control(self, kind: int, flags: int, payload: bytes) -> Event | None:
        match kind:
            case 1:
                stream = self._number_opened(payload)
                return StreamOpened(stream, self._headers(payload[10:]), bool(flags & _FIN))
            case 3:
                return StreamReset(struct.unpack(">I", payload[:4])[0] & 0x7FFF_FFFF)
            case 6:
                return SpdyPing(struct.unpack(">I", payload[:4])[0])
            case 7:
                return SpdyGoneAway()
            case 8:
                self._headers(payload[4:])  # later headers need the state of the decompression
        return None

    def _number_opened(self, payload: bytes) -> int:
        stream = int(struct.unpack(">I", payload[:4])[0]) & 0x7FFF_FFFF
        if stream <= self._newest:
            raise SpdyError(f"stream {stream} was opened after stream {self._newest}")
        self._newest = stream
        return stream

    def _headers(self, packed: bytes) -> Mapping[str, str]:
        block = self._unpack.decompress(packed, _MOST_BYTES)
        if self._unpack.unconsumed_tail:
            raise SpdyError("headers are too large")
        (count,) = struct.unpack(">I", block[:4])
        if count > _MOST_HEADERS:
            raise SpdyError(f"a stream has {count} headers, more than {_MOST_HEADERS}")
        at, words = 4, []
        for _ in range(2 * count):
            (size,) = struct.unpack(">I", block[at : at + 4])
            words.append(block[at + 4 : at + 4 + size].decode())
            at += 4 + size
        return dict(zip(words[::2], words[1::2], strict=True))

    # --- frames to send

    def reply(self, stream: int) -> bytes:
        """Returns a frame that accepts a stream."""
        packed = self._pack.compress(struct.pack(">I", 0)) + self._pack.flush(zlib.Z_SYNC_FLUSH)
        return _control(_SYN_REPLY, struct.pack(">I", stream) + packed)

    def open(self, headers: Mapping[str, str]) -> tuple[int, bytes]:
        """Returns the number of a new stream, and the frame that opens it."""
        stream, self._next = self._next, self._next + 2
        words = [word.encode() for pair in headers.items() for word in pair]
        block = struct.pack(">I", len(headers))
        block += b"".join(struct.pack(">I", len(word)) + word for word in words)
        packed = self._pack.compress(block) + self._pack.flush(zlib.Z_SYNC_FLUSH)
        return stream, _control(_SYN_STREAM, struct.pack(">IIH", stream, 0, 0) + packed)

    def data(self, stream: int, data: bytes, *, end: bool = False) -> bytes:
        """Returns a frame with data of a stream, at most 16 MiB."""
        return struct.pack(">II", stream, (_FIN if end else 0) << 24 | len(data)) + data

    def reset(self, stream: int, status: int = CANCEL) -> bytes:
        """Returns a frame that rejects or resets a stream."""
        return _control(_RST_STREAM, struct.pack(">II", stream, status))

    def pong(self, number: int) -> bytes:
        """Returns a frame that answers a ping."""
        return _control(_PING, struct.pack(">I", number))


def _control(kind: int, payload: bytes) -> bytes:
    return struct.pack(">HHI", 0x8000 | _VERSION, kind, len(payload)) + payload
