"""The cluster of a run: `kcm up` with simulated nodes, or with nodes of a container runtime."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

_NODES = 5
_START_TIMEOUT = 120.0  # seconds
_STOP_TIMEOUT = 60.0  # seconds
_READY = "Ctrl-C stops it all"  # in what `kcm up` prints last
_KCM = (sys.executable, "-m", "kcm.cli.main")
_CLUSTER_DNS = "10.96.0.10"


@dataclass(frozen=True)
class ContainerNodes:
    """Nodes whose kubelets are kcm's and share this machine and its container runtime."""

    endpoint: str  # of the container runtime
    count: int
    kubectl: str
    beside: Sequence[Path] = ()  # programs that run as long as the nodes, with KUBECONFIG


@contextmanager
def start_simulated(logs: Path, *, programs: bool) -> Iterator[Path]:
    """Starts kcm with simulated nodes, whose containers do what their commands say if `programs`
    says so, and yields its kubeconfig. Raises RuntimeError.
    """
    with _start_kcm(logs, _NODES, *(["--nodes-programs"] if programs else ())) as folder:
        yield folder / "kubeconfig"


@contextmanager
def start_containers(logs: Path, nodes: ContainerNodes) -> Iterator[Path]:
    """Starts kcm with nodes that run containers, and yields its kubeconfig.

    Pods find name servers at 10.96.0.10, if a program beside makes a Service of that address.
    Raises RuntimeError.
    """
    with _start_kcm(logs, 0) as folder, ExitStack() as running:
        kubeconfig = folder / "kubeconfig"
        env = {"KCM_STATE_DIR": str(folder), "KUBECONFIG": str(kubeconfig)}
        names = [f"containers-{number + 1}" for number in range(nodes.count)]
        for name in names:
            command = [
                *(*_KCM, "kubelet", f"--node-name={name}", "--port=0", "--allowed-host-paths=/"),
                *(f"--container-runtime-endpoint={nodes.endpoint}", "--end-containers"),
                *(f"--root-dir={folder / 'kubelet' / name}", f"--cluster-dns={_CLUSTER_DNS}"),
                # The disk of a machine for tests is often nearly full.
                *(
                    f"--node-ip={_find_address() or '127.0.0.1'}",
                    "--eviction-hard=",
                    "--image-gc-high-threshold=100",
                ),
            ]
            running.enter_context(_run(command, logs / f"kubelet-{name}.txt", env))
        for program in nodes.beside:
            running.enter_context(_run([str(program)], logs / f"beside-{program.name}.txt", env))
        _wait_for_nodes(nodes.kubectl, kubeconfig, names)
        yield kubeconfig


@contextmanager
def _start_kcm(logs: Path, simulated: int, *flags: str) -> Iterator[Path]:
    """Starts kcm with a number of simulated nodes, and yields its state folder."""
    with tempfile.TemporaryDirectory(prefix="kcm-conformance-") as folder:
        command = [
            *(*_KCM, "up", f"--nodes={simulated}", "--no-kubelet"),
            *("--flower-port=0", "--health-port=0", f"--api-port={_find_free_port()}"),
            *flags,
        ]
        if address := _find_address():
            command.append(f"--api-host={address}")
        log = logs / "kcm-up.txt"
        with _run(command, log, {"KCM_STATE_DIR": folder}) as process:
            _wait_ready(process, log)
            yield Path(folder)


@contextmanager
def _run(
    command: Sequence[str], log: Path, env: dict[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """Runs a program, and ends it with SIGTERM. Its output is in a log."""
    with log.open("w") as output:
        process = subprocess.Popen(
            command,
            env=os.environ | env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(_STOP_TIMEOUT)


def _wait_for_nodes(kubectl: str, kubeconfig: Path, names: Sequence[str]) -> None:
    """Waits until the nodes are registered and ready. Raises RuntimeError."""
    command = [kubectl, f"--kubeconfig={kubeconfig}", "wait", "--for=condition=Ready",
               *(f"node/{name}" for name in names)]  # fmt: skip
    deadline = time.monotonic() + _START_TIMEOUT
    while (done := subprocess.run(command, capture_output=True, text=True, check=False)).returncode:
        if time.monotonic() > deadline:
            raise RuntimeError(f"the nodes are not ready: {done.stderr}")
        time.sleep(0.5)


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
