"""The command lines of kcm's processes, for `kcm up` and for single commands."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path

from kcm import errors

_CELERY = (sys.executable, "-m", "celery", "--quiet", "-A", "workers")  # without its banner


def manager(args: Sequence[str] = ()) -> list[str]:
    """Returns the command line of a manager."""
    return [sys.executable, "-m", "kcm.manager", *args]


def apiserver(args: Sequence[str] = ()) -> list[str]:
    """Returns the command line of the Kubernetes API server."""
    return [sys.executable, "-m", "kcm.apiserver", *args]


def nodes(args: Sequence[str] = ()) -> list[str]:
    """Returns the command line of a simulator of nodes."""
    return [sys.executable, "-m", "kcm.cli.main", "nodes", *args]


def test_env(args: Sequence[str]) -> list[str]:
    """Returns the command line that runs a command with a control plane of its own."""
    return [sys.executable, "-m", "kcm.testing.test_env", *args]


def envtest(args: Sequence[str]) -> list[str]:
    """Returns the command line that serves suites that are written for envtest."""
    return [sys.executable, "-m", "kcm.testing.envtest.assets", *args]


def worker(args: Sequence[str] = ()) -> list[str]:
    """Returns the command line of a worker that sends task events to Flower and starts quickly."""
    return [*_CELERY, "worker", "-E", "--without-mingle", "--without-gossip", *args]


def node(args: Sequence[str] = ()) -> list[str]:
    """Returns the command line of `kcm kubelet`, whose process becomes the worker of `kubelet`."""
    return [sys.executable, "-m", "kcm.cli.main", "kubelet", *args]


def kubelet(node: str, concurrency: int) -> list[str]:
    """Returns the command line of a kubelet that runs as a Celery worker with its own queue."""
    celery = [sys.executable, "-m", "celery", "--quiet", "-A", "workers.kubelet", "worker"]
    pool = ["--pool", "threads", "--concurrency", str(concurrency)]
    return [*celery, "-E", "--without-mingle", "--without-gossip", *pool, "-n", f"kubelet@{node}"]


def beat(args: Sequence[str] = ()) -> list[str]:
    """Returns the command line of beat. Its schedule is computed, so it needs no file."""
    return [*_CELERY, "beat", *args]


def flower(args: Sequence[str] = ()) -> list[str]:
    """Returns the command line of Flower with kcm's configuration file."""
    return [*_CELERY, "flower", f"--conf={flower_configuration()}", *args]


def flower_configuration() -> Path:
    """Returns the path of Flower's configuration file.

    Raises ConfigurationError if the package `workers` is not installed.
    """
    spec = importlib.util.find_spec("workers")  # finds it without importing Celery
    if spec is None or spec.origin is None:
        raise errors.ConfigurationError(
            "the package `workers`, which belongs to kcm, is not installed"
        )
    return Path(spec.origin).with_name("flowerconfig.py")
