"""The token of this node's HTTP API, which is derived from a key in the store.

The key is also kept in a file, for times when the store is unavailable.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path

import structlog

from kcm import errors
from kcm.clock import Clock
from kcm.helpers import node_token
from kcm.kubelet.options import KubeletOptions
from kcm.store.objects import ObjectStore

log = structlog.get_logger("kcm.kubelet")

KEY_EVERY = 30.0  # seconds between two reads of the key
RETRY = 1.0  # seconds, while there is no key yet


class NodeKey:
    """Derives the token of this node's HTTP API from the cluster's key. Thread-safe."""

    def __init__(self, store: ObjectStore, options: KubeletOptions, clock: Clock) -> None:
        self._store = store
        self._options = options
        self._clock = clock
        self._file = options.root_dir / "api-key"
        self._lock = threading.Lock()
        self._key = b""
        self.token = ""

    def prove_address(self) -> str:
        """Returns the proof that the node's address is its own, "" if the node may not read the
        key.

        Reads the key unless it is known. Raises: StoreUnavailable.
        """
        if not self._key:
            with suppress(errors.Forbidden):
                self._take(node_token.ensure_key(self._store), keep=True)
        return node_token.prove_address(self._key, *self._place) if self._key else ""

    def run(self, stop: threading.Event) -> None:
        """Keeps the token up to date until `stop` is set. Starts with the key in the file."""
        self._take(_read(self._file))
        refused = False
        while not stop.is_set():
            try:
                self._take(node_token.ensure_key(self._store), keep=True)
            except errors.Forbidden:
                if not refused:
                    log.info("This node may not read the key of the nodes' APIs")
                refused = True
                self._clock.wait(stop, KEY_EVERY)
                continue
            except errors.KcmError as error:
                log.info("The key of the node's API cannot be read", error=error.message)
            self._clock.wait(stop, KEY_EVERY if self.token else RETRY)

    def _take(self, key: bytes, *, keep: bool = False) -> None:
        if not key:
            return
        token = node_token.derive_token(key, *self._place)
        with self._lock:  # the node manager may take it, too
            if token != self.token and keep:
                _write(self._file, key)
            self._key, self.token = key, token

    @property
    def _place(self) -> tuple[str, str, int]:
        options = self._options
        return options.node_name, options.node_ip, options.port


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""


def _write(file: Path, key: bytes) -> None:
    fresh = file.with_suffix(".new")
    fresh.touch(mode=0o600)
    fresh.write_bytes(key)
    fresh.replace(file)
