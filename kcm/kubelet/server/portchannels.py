"""Port-forwarding in channels of a WebSocket, as client libraries other than Go's do it.

The request names the ports. The port at index n has channel 2n for its data and 2n+1 for errors. A
message is the channel's number, then bytes. The first message of each channel is the port in two
bytes, the lower one first. There is one connection to each port. The session ends when all of them
are closed, or when the client leaves.

Source: staging/src/k8s.io/kubelet/pkg/cri/streaming/portforward/websocket.go, Kubernetes 1.33.
Departure: the base64 variant of the protocol is not supported.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from concurrent.futures import Executor
from contextlib import suppress

from kcm import errors
from kcm.kubelet.server.messages import Admit, Connect, MessageConnection

SUBPROTOCOL = "v4.channel.k8s.io"
_MOST_PORTS = 100  # the number of a channel is one byte
_CHUNK = 32 * 1024  # bytes


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
        reader, writer = await self._connect_to(self._ports[number])
        self._writers[number].set_result(writer)
        try:
            while piece := await reader.read(_CHUNK):
                await self._send(2 * number, piece)
        finally:
            writer.close()

    async def _connect_to(self, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        loop = asyncio.get_running_loop()
        fd = await loop.run_in_executor(self._pool, self._connect, port)
        return await asyncio.open_connection(sock=socket.socket(fileno=fd))

    async def _send(self, channel: int, data: bytes) -> None:
        await self._channel.send(bytes((channel,)) + data)
