"""Port-forwarding over SPDY inside WebSocket messages, with a pair of streams per connection.

A client opens two streams with the same `requestid`, one for data and one for errors. Guarantees: a
connection that fails is reported on its error stream and does not affect the others. Does not
guarantee fairness: if a program in the pod does not read, the other connections of the session
wait.

Source: staging/src/k8s.io/kubelet/pkg/cri/streaming/portforward/httpstream.go and
staging/src/k8s.io/client-go/tools/portforward, Kubernetes 1.33.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from kcm import errors
from kcm.kubelet.cri import PortConnection
from kcm.kubelet.server import spdy
from kcm.kubelet.server.messages import Admit, Connect, MessageConnection

# --- Port-forwarding in channels of a WebSocket, as client libraries other than Go's do it.
#
# The request names the ports. The port at index n has channel 2n for its data and 2n+1 for errors.
# A message is the channel's number, then bytes. The first message of each channel is the port in
# two bytes, the lower one first. There is one connection to each port. The session ends when all of
# them are closed, or when the client leaves.
#
# Source: staging/src/k8s.io/kubelet/pkg/cri/streaming/portforward/websocket.go, Kubernetes 1.33.
# Departure: the base64 variant of the protocol is not supported.


SUBPROTOCOL = "v4.channel.k8s.io"
_MOST_PORTS = 100  # the number of a channel is one byte


def parse_ports(values: Sequence[str]) -> list[int]:
    """Returns the ports in the query's values, each of which may be a comma-separated list.

    Raises BadRequest.
    """
    ports: list[int] = []
    for text in (part for value in values for part in value.split(",")):
        if not (text.isascii() and text.isdigit() and len(text) < 6 and 0 < int(text) < 65536):
            raise errors.BadRequest(f"unable to parse {text[:20]!r} as a port")
        ports.append(int(text))
    if not ports:
        raise errors.BadRequest('query parameter "port" is required')
    if len(ports) > _MOST_PORTS:
        raise errors.BadRequest(f"more than {_MOST_PORTS} ports")
    return ports


class PortChannels:
    """The session of one client, on one WebSocket."""

    def __init__(
        self,
        channel: MessageConnection,
        ports: Sequence[int],
        connect: Connect,
        pool: Executor,
        *,
        admit: Admit,
    ) -> None:
        self._channel = channel
        self._ports = ports
        self._connect = connect
        self._pool = pool
        self._admit = admit
        loop = asyncio.get_running_loop()
        # The results are None for ports that could not be connected to.
        self._writers: list[asyncio.Future[asyncio.StreamWriter | None]] = [
            loop.create_future() for _ in ports
        ]

    async def run(self) -> None:
        """Forwards until the client leaves or all connections are closed."""
        listening = asyncio.ensure_future(self._listen())
        forwarding = asyncio.gather(*(self._forward(number) for number in range(len(self._ports))))
        try:
            await asyncio.wait((listening, forwarding), return_when=asyncio.FIRST_COMPLETED)
        finally:
            listening.cancel()
            forwarding.cancel()
            await asyncio.gather(listening, forwarding, return_exceptions=True)
            await self._channel.close()

    async def _listen(self) -> None:
        while (message := await self._channel.receive()) is not None:
            number, is_error = divmod(message[0], 2) if message else (len(self._ports), 0)
            if is_error or number >= len(self._ports):
                continue  # clients have nothing to send there
            writer = await self._writers[number]
            if writer is not None:
                with suppress(OSError):  # `_forward` reports it
                    writer.write(message[1:])
                    await writer.drain()

    async def _forward(self, number: int) -> None:
        """Connects to a port, and sends what the pod writes to the client."""
        port, data, error = self._ports[number], 2 * number, 2 * number + 1
        with suppress(OSError):  # the client has gone
            for channel in (data, error):
                await self._send(channel, port.to_bytes(2, "little"))
            try:
                with self._admit():
                    await self._pass_on(number)
            except (OSError, errors.ContainerRuntimeError, errors.ApiError) as fault:
                if not self._writers[number].done():
                    self._writers[number].set_result(None)
                why = getattr(fault, "message", "") or str(fault)
                await self._send(error, f"error forwarding port {port}: {why}".encode())

    async def _pass_on(self, number: int) -> None:
        loop = asyncio.get_running_loop()
        connection = await loop.run_in_executor(self._pool, self._connect, self._ports[number])
        reader, writer = await _open(connection)
        self._writers[number].set_result(writer)
        try:
            with _telling_fault(connection):
                while piece := await reader.read(_CHUNK):
                    await self._send(2 * number, piece)
        finally:
            writer.close()

    async def _send(self, channel: int, data: bytes) -> None:
        await self._channel.send(bytes((channel,)) + data)


async def _open(connection: PortConnection) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection(sock=socket.socket(fileno=connection.descriptor))


@contextmanager
def _telling_fault(connection: PortConnection) -> Iterator[None]:
    """Raises ContainerRuntimeError at the end if the runtime has ended the connection, in place of
    an error of the socket that comes of it.
    """
    failure: OSError | None = None
    try:
        yield
    except OSError as error:
        failure = error
    if fault := connection.find_fault():
        raise errors.ContainerRuntimeError(fault) from failure
    if failure is not None:
        raise failure


SUBPROTOCOLS = ("SPDY/3.1+portforward.k8s.io",)
_CHUNK = 32 * 1024  # bytes
_MOST_STREAMS = 1024
_MOST_EARLY = 1024 * 1024  # bytes of a session that are kept until their sockets are connected
_FRAMES = 256  # frames that are handled before other tasks get a turn
_MOST_OF_ID, _MOST_DIGITS = 64, 5  # characters of a request's id, and of a port
_PAIRING = 30.0  # seconds for the second stream of a pair


@dataclass
class _Forward:
    """One forwarded connection: its two streams, and the socket once it is connected."""

    request: str
    port: int = 0
    data: int | None = None
    error: int | None = None
    writer: asyncio.StreamWriter | None = None
    early: bytearray = field(default_factory=bytearray)  # kept until the socket is connected
    ended: bool = False  # whether the client has closed its data stream
    task: asyncio.Task[None] | None = None
    giving_up: asyncio.TimerHandle | None = None  # while the second stream is missing


class PortForwarding:
    """The session of one client, on one WebSocket."""

    def __init__(
        self, channel: MessageConnection, connect: Connect, pool: Executor, *, admit: Admit
    ) -> None:
        self._channel = channel
        self._connect = connect
        self._pool = pool
        self._admit = admit
        self._session = spdy.SpdySession()
        self._forwards: dict[str, _Forward] = {}
        self._streams: dict[int, _Forward] = {}
        self._early = 0  # bytes that all connections keep

    async def run(self) -> None:
        """Forwards until the client leaves."""
        try:
            with suppress(OSError, spdy.SpdyError):
                while (message := await self._channel.receive()) is not None:
                    for number, event in enumerate(self._session.receive(message), 1):
                        await self._handle(event)
                        if number % _FRAMES == 0:
                            await asyncio.sleep(0)  # other tasks get a turn
        finally:
            forwards = list(self._forwards.values())
            tasks = [forward.task for forward in forwards if forward.task is not None]
            for forward in forwards:
                self._forget(forward)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._channel.close()

    async def _handle(self, event: spdy.Event) -> None:
        match event:
            case spdy.StreamOpened():
                await self._handle_opened(event)
            case spdy.Data():
                await self._handle_data(event)
            case spdy.StreamReset():
                self._reset(event.stream)
            case spdy.SpdyPing():
                await self._channel.send(self._session.pong(event.number))

    async def _handle_opened(self, event: spdy.StreamOpened) -> None:
        headers = event.headers
        kind, port = headers.get("streamtype", ""), _parse_port(headers.get("port", ""))
        # Clients before 1.4 send no id: their data stream follows its error stream.
        number = event.stream if kind == "error" else event.stream - 2
        request = headers.get("requestid") or str(number)
        forward = self._forwards.get(request) or _Forward(request)
        is_wrong = kind not in ("data", "error") or not port or len(request) > _MOST_OF_ID
        if is_wrong or getattr(forward, kind) or len(self._streams) >= _MOST_STREAMS:
            await self._channel.send(self._session.reset(event.stream, spdy.REFUSED_STREAM))
            return
        self._forwards[request] = forward
        forward.port = port
        setattr(forward, kind, event.stream)
        self._streams[event.stream] = forward
        await self._channel.send(self._session.reply(event.stream))
        if kind == "data":
            forward.ended = event.ended
        if forward.giving_up is not None:
            forward.giving_up.cancel()
        if forward.data is not None and forward.error is not None:
            forward.task = asyncio.ensure_future(self._forward(forward))
        else:
            loop = asyncio.get_running_loop()
            forward.giving_up = loop.call_later(_PAIRING, self._forget, forward)

    async def _handle_data(self, event: spdy.Data) -> None:
        forward = self._streams.get(event.stream)
        if forward is None or event.stream != forward.data:
            return  # clients send nothing on error streams
        forward.ended = forward.ended or event.ended
        if forward.writer is None:
            await self._keep(forward, event.data)
            return
        with suppress(OSError):
            forward.writer.write(event.data)
            await forward.writer.drain()
            if event.ended:
                forward.writer.write_eof()

    async def _keep(self, forward: _Forward, data: bytes) -> None:
        """Keeps data until the socket is connected, or resets the streams if there is too much."""
        if self._early + len(data) <= _MOST_EARLY:
            self._early += len(data)
            forward.early += data
            return
        streams = [stream for stream in (forward.data, forward.error) if stream is not None]
        if forward.task is not None:
            forward.task.cancel()
        self._forget(forward)
        for stream in streams:
            await self._channel.send(self._session.reset(stream))

    def _reset(self, stream: int) -> None:
        forward = self._streams.get(stream)
        if forward is not None and forward.task is None:
            self._forget(forward)
        elif forward is not None and forward.task is not None and stream == forward.data:
            forward.task.cancel()

    async def _forward(self, forward: _Forward) -> None:
        """Connects to a port, and sends what the pod writes to the client."""
        assert forward.data is not None
        assert forward.error is not None
        fault = b""
        try:
            with self._admit():
                loop = asyncio.get_running_loop()
                connection = await loop.run_in_executor(self._pool, self._connect, forward.port)
                with _telling_fault(connection):
                    reader = await self._connect_to(forward, connection)
                    while data := await reader.read(_CHUNK):
                        await self._channel.send(self._session.data(forward.data, data))
        except (OSError, errors.ContainerRuntimeError, errors.ApiError) as error:
            why = getattr(error, "message", "") or str(error)
            fault = f"error forwarding port {forward.port}: {why}".encode()
        finally:
            if forward.writer is not None:
                forward.writer.close()
            self._forget(forward)
        with suppress(OSError):
            await self._channel.send(self._session.data(forward.data, b"", end=True))
            await self._channel.send(self._session.data(forward.error, fault, end=True))

    async def _connect_to(
        self, forward: _Forward, connection: PortConnection
    ) -> asyncio.StreamReader:
        reader, writer = await _open(connection)
        writer.write(forward.early)
        self._early -= len(forward.early)
        forward.early = bytearray()
        forward.writer = writer
        await writer.drain()
        if forward.ended:
            writer.write_eof()
        return reader

    def _forget(self, forward: _Forward) -> None:
        if forward.giving_up is not None:
            forward.giving_up.cancel()  # it would keep the forward
        self._forwards.pop(forward.request, None)
        self._early -= len(forward.early)
        forward.early = bytearray()
        for stream in (forward.data, forward.error):
            if stream is not None:
                self._streams.pop(stream, None)


def _parse_port(text: str) -> int:
    """Returns the number of a port, 0 for what is none."""
    fine = text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
    return int(text) if fine and int(text) < 65536 else 0
