"""Makes signals readable from a socket. Imports the standard library only."""

from __future__ import annotations

import signal
import socket
from collections.abc import Sequence


def catch_signals(numbers: Sequence[signal.Signals]) -> tuple[socket.socket, socket.socket]:
    """Returns a socket from which the numbers of signals that came can be read, and the one that
    they are written to, which is to be kept. `numbers` are the signals that end nothing from now
    on.
    """
    readable, written = socket.socketpair()
    readable.setblocking(False)
    written.setblocking(False)
    signal.set_wakeup_fd(written.fileno())
    for number in numbers:
        signal.signal(number, lambda *_: None)
    return readable, written
