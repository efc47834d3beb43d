"""The official client of Kubernetes for Python, without what it leaves behind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kubernetes import client, config


@contextmanager
def open_official_client(kubeconfig: Path) -> Iterator[client.ApiClient]:
    """Yields a client of the cluster in a kubeconfig, and closes its connections at the end.

    The client itself leaves them to the garbage collector, whose warning fails the test that
    happens to run then.
    """
    with config.new_client_from_config(str(kubeconfig)) as connection:
        try:
            yield connection
        finally:
            connection.rest_client.pool_manager.clear()
