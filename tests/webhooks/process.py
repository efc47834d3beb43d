"""Starts the server of webhooks."""

from __future__ import annotations

import base64
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.integration.apiserver.authority import Authority


@dataclass(frozen=True)
class WebhookServer:
    """A running server, whose certificate is for its address and for names of Services."""

    port: int
    authority: bytes  # in PEM

    @property
    def bundle(self) -> str:
        """The certificate of the authority as a caBundle."""
        return base64.b64encode(self.authority).decode()

    def url(self, behaviour: str) -> str:
        return f"https://127.0.0.1:{self.port}/{behaviour}"

    def at(self, behaviour: str) -> dict[str, Any]:
        """Returns the clientConfig of a webhook at a URL."""
        return {"url": self.url(behaviour), "caBundle": self.bundle}

    def take_reviews(self) -> list[Any]:
        """Returns what the server was asked since the last call."""
        reviews: list[Any] = self._get("reviews")
        return reviews

    def release(self) -> None:
        """Ends the requests that the server has not answered, and answers none later."""
        self._get("release")

    def _get(self, path: str) -> Any:
        context = ssl.create_default_context(cadata=self.authority.decode())
        return httpx.get(self.url(path), verify=context).json()


@contextmanager
def webhook_server(
    folder: Path, *names: str, client_authority: str = ""
) -> Iterator[WebhookServer]:
    """Yields a server in a process of its own, with a certificate for these names, too."""
    authority = Authority(folder, "webhooks")
    certificate, key = authority.server("127.0.0.1", *names)
    command = [sys.executable, "-m", "tests.webhooks.server", certificate, key]
    if client_authority:
        command.append(client_authority)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield WebhookServer(int(process.stdout.readline()), authority.path.read_bytes())
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
