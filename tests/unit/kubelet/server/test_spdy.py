"""SPDY frames: received ones as events, and frames to send."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping

import pytest

from kcm.kubelet.server.spdy import (
    DICTIONARY,
    Data,
    Event,
    SpdyError,
    SpdyGoneAway,
    SpdyPing,
    SpdySession,
    StreamOpened,
    StreamReset,
)


class Client:
    """Builds frames by the specification, as a client."""

    def __init__(self) -> None:
        self._pack = zlib.compressobj(9, zdict=DICTIONARY)
        self.unpack = zlib.decompressobj(zdict=DICTIONARY)

    def headers(self, headers: Mapping[str, str]) -> bytes:
        block = struct.pack(">I", len(headers))
        for name, value in headers.items():
            for word in (name, value):
                block += struct.pack(">I", len(word)) + word.encode()
        return self._pack.compress(block) + self._pack.flush(zlib.Z_SYNC_FLUSH)

    def open_frame(self, stream: int, headers: Mapping[str, str], flags: int = 0) -> bytes:
        payload = struct.pack(">IIH", stream, 0, 0) + self.headers(headers)
        return control(1, payload, flags)


def control(kind: int, payload: bytes, flags: int = 0) -> bytes:
    return struct.pack(">HHI", 0x8003, kind, flags << 24 | len(payload)) + payload


def test_the_dictionary_is_the_specifications() -> None:
    # The id that SPDY/3 streams name it by.
    assert (len(DICTIONARY), zlib.adler32(DICTIONARY)) == (1423, 0xE3C6A7C2)


def test_streams_open_with_headers_that_share_one_context() -> None:
    client, session = Client(), SpdySession()
    first = {"streamtype": "error", "port": "8080", "requestid": "0"}
    second = {"streamtype": "data", "port": "8080", "requestid": "0"}
    sent = client.open_frame(1, first) + client.open_frame(3, second, flags=1)
    events = [event for byte in sent for event in session.receive(bytes([byte]))]
    assert events == [StreamOpened(1, first), StreamOpened(3, second, ended=True)]


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (struct.pack(">II", 3, 3) + b"abc", [Data(3, b"abc", ended=False)]),
        (struct.pack(">II", 3, 1 << 24), [Data(3, b"", ended=True)]),
        (control(3, struct.pack(">II", 5, 5)), [StreamReset(5)]),
        (control(6, struct.pack(">I", 7)), [SpdyPing(7)]),
        (control(7, struct.pack(">II", 3, 0)), [SpdyGoneAway()]),
        (control(4, struct.pack(">I", 0)), []),
        (control(9, struct.pack(">II", 1, 1000)), []),
    ],
)
def test_frames_are_read(frame: bytes, expected: list[Event]) -> None:
    assert list(SpdySession().receive(frame)) == expected


@pytest.mark.parametrize(
    "frame",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        struct.pack(">HHI", 0x8002, 1, 0),
        control(1, struct.pack(">IIH", 1, 0, 0) + b"no zlib"),
        control(3, b""),
        struct.pack(">II", 1, 0xFFFFFF),
    ],
)
def test_what_is_no_spdy_is_refused(frame: bytes) -> None:
    with pytest.raises(SpdyError):
        list(SpdySession().receive(frame))


def build_block(count: int, body: bytes) -> bytes:
    pack = zlib.compressobj(9, zdict=DICTIONARY)
    return pack.compress(struct.pack(">I", count) + body) + pack.flush(zlib.Z_SYNC_FLUSH)


@pytest.mark.parametrize(
    ("block", "why"),
    [
        (build_block(65, bytes(65 * 8)), "65 headers"),
        (build_block(0xFFFF_FFFF, b""), "4294967295 headers"),
        (build_block(1, struct.pack(">I", 17000) + b"x" * 17000), "too large"),
        (build_block(1, struct.pack(">I", 0)), "cannot be read"),
    ],
    ids=["many", "endless", "large", "short"],
)
def test_headers_that_unpack_to_much_are_refused(block: bytes, why: str) -> None:
    with pytest.raises(SpdyError, match=why):
        list(SpdySession().receive(control(1, struct.pack(">IIH", 1, 0, 0) + block)))


@pytest.mark.parametrize("second", [0, 1, 3])
def test_the_numbers_of_streams_grow(second: int) -> None:
    client, session = Client(), SpdySession()
    list(session.receive(client.open_frame(3, {})))
    with pytest.raises(SpdyError, match="was opened after stream 3"):
        list(session.receive(client.open_frame(second, {})))


def test_answers_are_what_a_client_reads() -> None:
    client, session = Client(), SpdySession()
    for stream in (1, 3):
        frame = session.reply(stream)
        assert frame[:4] == b"\x80\x03\x00\x02"
        assert struct.unpack(">I", frame[8:12]) == (stream,)
        assert client.unpack.decompress(frame[12:]) == struct.pack(">I", 0)
    assert session.data(3, b"abc", end=True) == struct.pack(">II", 3, 1 << 24 | 3) + b"abc"
    assert session.pong(7) == control(6, struct.pack(">I", 7))
    assert session.reset(5) == control(3, struct.pack(">II", 5, 5))
