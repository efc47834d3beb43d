"""exec and attach over WebSocket. A message's first byte is the number of its channel.

Version 5 of the protocol adds to version 4 that a stream can be closed, so that a command sees the
end of its input. In the first version a failure is a text instead of a Status, and success is none.

Source: staging/src/k8s.io/client-go/tools/remotecommand/v5.go and
staging/src/k8s.io/cri-streaming/pkg/streaming/remotecommand/websocket.go, Kubernetes 1.36.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from contextlib import closing, suppress
from typing import Any

from kcm import errors
from kcm.kubelet.cri import Stream, StreamOptions
from kcm.kubelet.server.messages import MessageConnection
from kcm.kubelet.server.queries import is_true

FIRST_VERSION = "channel.k8s.io"
SUBPROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io", FIRST_VERSION)
STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
_CHUNK = 32 * 1024  # bytes of a message
_MOST_OF_SIZE = 256  # bytes of a message with a terminal's size
_MOST_COLUMNS = 0xFFFF  # and rows, of a terminal
_LATE = 1.0  # seconds in which children of a command may still write after its exit
_LOOK = 0.2  # seconds until it is noticed that a client has left


def parse_stream_options(query: Mapping[str, str]) -> StreamOptions:
    """Returns the streams that a request's query asks for. Raises BadRequest."""

    def is_asked(*names: str) -> bool:
        return any(is_true(query, name) for name in names)

    tty = is_asked("tty")
    options = StreamOptions(
        stdin=is_asked("input", "stdin"),
        stdout=is_asked("output", "stdout"),
        stderr=is_asked("error", "stderr") and not tty,
        tty=tty,
    )
    if not (options.stdin or options.stdout or options.stderr):
        raise errors.BadRequest("you must specify at least 1 of stdin, stdout, stderr")
    return options


def _close(opening: Future[Stream]) -> None:
    """Closes a stream that was opened after its session had been cancelled."""
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()


def build_success() -> dict[str, Any]:
    return {"metadata": {}, "status": "Success"}


def build_exit_status(code: int | None) -> dict[str, Any]:
    """Returns the Status of a command that has exited with that code."""
    if not code:
        return build_success()
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


def build_internal_error(why: str) -> dict[str, Any]:
    """Returns the Status of a request that failed."""
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"Internal error occurred: {why}",
        "reason": "InternalError",
        "details": {"causes": [{"message": why}]},
        "code": 500,
    }


class FirstVersion:
    """A connection of a client that speaks the protocol's first version."""

    def __init__(self, socket: MessageConnection) -> None:
        self.receive = socket.receive
        self.close = socket.close
        self._socket = socket

    async def send(self, data: bytes) -> None:
        """Sends a message; of a Status, its message if it is a failure. Raises OSError."""
        if data[0] == ERROR and len(data) > 1:
            status = json.loads(data[1:])
            if status["status"] == "Success":
                return
            data = bytes([ERROR]) + status["message"].encode()
        await self._socket.send(data)


class ChannelSession:
    """One exec or attach over one connection with channels."""

    def __init__(self, socket: MessageConnection, wanted: StreamOptions, pool: Executor) -> None:
        self._socket = socket
        self._wanted = wanted
        self._pool = pool
        self._loop = asyncio.get_running_loop()

    async def run(self, open_: Callable[[], Stream], *, is_exec: bool) -> None:
        """Opens the stream in a thread, copies data both ways, and sends the Status at the end."""
        try:
            with suppress(OSError):
                await self._announce()
                try:
                    with closing(await self._open(open_)) as stream:
                        code = await self._pass_on(stream)
                except errors.ContainerRuntimeError as error:
                    await self._send_status(build_internal_error(error.message))
                else:
                    if code is not None:
                        await self._send_status(
                            build_exit_status(code) if is_exec else build_success()
                        )
        finally:
            await self._socket.close()

    async def _open(self, open_: Callable[[], Stream]) -> Stream:
        opening = self._pool.submit(open_)
        try:
            return await asyncio.wrap_future(opening)
        except asyncio.CancelledError:  # the server stops
            opening.add_done_callback(_close)
            raise

    async def _announce(self) -> None:
        """Sends an empty message on the first output channel, which the client waits for."""
        channel = STDOUT if self._wanted.stdout else STDERR if self._wanted.stderr else ERROR
        await self._socket.send(bytes([channel]))

    async def _send_status(self, status: Mapping[str, Any]) -> None:
        await self._socket.send(bytes([ERROR]) + json.dumps(status).encode())

    async def _pass_on(self, stream: Stream) -> int | None:
        """Copies data both ways until the process exits.

        Returns its exit code, or None if the client left first.
        """
        outputs: list[asyncio.Future[None]] = [
            asyncio.ensure_future(self._out(channel, fd))
            for channel, fd in ((STDOUT, stream.stdout), (STDERR, stream.stderr))
            if fd is not None
        ]
        left = threading.Event()
        inputs = asyncio.ensure_future(self._in(stream))
        waiting = self._loop.run_in_executor(self._pool, _wait_for_exit, stream, left)
        exiting = asyncio.ensure_future(waiting)
        try:
            first: set[asyncio.Future[Any]] = {exiting, inputs}
            await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
            if exiting.done() and outputs:
                await asyncio.wait(outputs, timeout=_LATE)
        finally:
            left.set()
            for task in (*outputs, inputs):
                task.cancel()
            # The stream must not be closed while any of these uses it.
            await asyncio.gather(*outputs, inputs, exiting, return_exceptions=True)
        return exiting.result()

    async def _out(self, channel: int, fd: int) -> None:
        reader = asyncio.StreamReader(limit=_CHUNK)
        # The descriptor is duplicated, because the stream closes its own.
        pipe = os.fdopen(os.dup(fd), "rb", 0)
        transport, _ = await self._loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), pipe
        )
        try:
            with suppress(OSError):  # a terminal's end is an error (EIO)
                while data := await reader.read(_CHUNK):
                    await self._socket.send(bytes([channel]) + data)
        finally:
            transport.close()

    async def _in(self, stream: Stream) -> None:
        """Handles messages of the client until it leaves: input, end of input, terminal sizes."""
        writer = await self._writer(stream)
        try:
            while (message := await self._socket.receive()) is not None:
                channel, data = message[:1], message[1:]
                if channel == bytes([STDIN]) and writer is not None:
                    writer.write(data)
                    with suppress(OSError):  # the command has closed its input
                        await writer.drain()
                elif channel == bytes([CLOSE]) and data[:1] == bytes([STDIN]) and writer:
                    writer.close()
                    writer = None
                    with suppress(OSError):
                        await self._loop.run_in_executor(self._pool, stream.close_stdin)
                elif channel == bytes([RESIZE]):
                    await self._resize(stream, data)
        finally:
            if writer is not None:
                writer.close()

    async def _writer(self, stream: Stream) -> asyncio.StreamWriter | None:
        if stream.stdin is None:
            return None
        pipe = os.fdopen(os.dup(stream.stdin), "wb", 0)
        transport, protocol = await self._loop.connect_write_pipe(
            lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), pipe
        )
        # So `drain` returns only when all is written, and the end of input follows it.
        transport.set_write_buffer_limits(0)
        return asyncio.StreamWriter(transport, protocol, None, self._loop)

    async def _resize(self, stream: Stream, data: bytes) -> None:
        if len(data) > _MOST_OF_SIZE:
            return  # to parse it would hold up the event loop
        with suppress(ValueError, OverflowError, TypeError, LookupError, OSError, errors.KcmError):
            size = json.loads(data)
            width, height = int(size["Width"]), int(size["Height"])
            if min(width, height) >= 0 and max(width, height) <= _MOST_COLUMNS:
                await self._loop.run_in_executor(self._pool, stream.resize, width, height)


def _wait_for_exit(stream: Stream, left: threading.Event) -> int | None:
    """Waits for the exit code and returns it. Returns None once `left` is set."""
    while not left.is_set():
        code = stream.wait(_LOOK)
        if code is not None:
            return code
    return None
