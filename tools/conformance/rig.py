"""The cluster of a run: `kcm up` with simulated nodes, unless a kubeconfig names another one."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_NODES = 5
_START_TIMEOUT = 120.0  # seconds
_STOP_TIMEOUT = 60.0  # seconds
_READY = "Ctrl-C stops it all"  # in what `kcm up` prints last


@contextmanager
def start_simulated(logs: Path) -> Iterator[Path]:
    """Starts kcm with simulated nodes, and yields its kubeconfig. Raises RuntimeError."""
    with tempfile.TemporaryDirectory(prefix="kcm-conformance-") as folder:
        command = [
            sys.executable, "-m", "kcm.cli.main", "up", f"--nodes={_NODES}", "--no-kubelet",
            "--flower-port=0", "--health-port=0", f"--api-port={_find_free_port()}",
        ]  # fmt: skip
        if address := _find_address():
            command.append(f"--api-host={address}")
        with (logs / "kcm-up.txt").open("w") as output:
            process = subprocess.Popen(
                command,
                env=os.environ | {"KCM_STATE_DIR": folder},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        try:
            _wait_ready(process, logs / "kcm-up.txt")
            yield Path(folder) / "kubeconfig"
        finally:
            process.terminate()
            process.wait(_STOP_TIMEOUT)


def _find_address() -> str:
    """Returns an address of this machine that is no loopback address, "" if it has none: a spec
    wants the API server among the endpoints of the Service kubernetes.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # nothing is sent
        except OSError:
            return ""
        address: str = probe.getsockname()[0]
        return "" if address.startswith("127.") else address


def _find_free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def _wait_ready(process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _START_TIMEOUT
    while _READY not in log.read_text(errors="replace"):
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"kcm up did not start: see {log}")
        time.sleep(0.2)
