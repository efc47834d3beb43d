"""The programs of all pods of a simulator: what they look up, and where their output goes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kcm.api.core_v1 import Node, Pod
from kcm.helpers.serviceaccount.tokens import DEFAULT_ISSUER, Issuer, read_signing_key
from kcm.kubelet.environment.store_lookups import StoreLookups
from kcm.kubelet.environment.variables import PodLocation
from kcm.kubelet.tokens.manager import SignedTokens
from kcm.simulation.programs.outputs import delete_outputs, write_outputs
from kcm.simulation.programs.process import PodPrograms
from kcm.simulation.runtime.containers import Attempt
from kcm.store import Store


class SimulatedPrograms:
    """The programs of a simulator's pods. Not thread-safe."""

    def __init__(self, store: Store, signing_key_file: Path | None) -> None:
        """Raises ConfigurationError for a key that cannot be read."""
        self._io = store.io
        tokens = None
        if signing_key_file is not None:
            key = read_signing_key(signing_key_file, "service-account-signing-key-file")
            issuer = Issuer(key, DEFAULT_ISSUER, (DEFAULT_ISSUER,))
            tokens = SignedTokens(store, issuer, store.clock)
        self._lookups = StoreLookups(store, store.clock, tokens)
        self._touched: dict[str, PodPrograms] = {}  # by pod uid, since `save`
        self._gone: dict[str, list[tuple[str, int]]] = {}  # attempts whose output is to be deleted

    def look_at(
        self,
        pod: Pod,
        pod_programs: PodPrograms | None,
        ips: tuple[str, ...],
        address: str,
        node: Node,
    ) -> PodPrograms:
        """Returns the programs of a pod with these addresses, `known` if it has any, for being
        advanced on a node with this address.
        """
        programs = pod_programs or PodPrograms(self._lookups)
        own = (address,) if pod.spec.host_network else ips
        programs.location = PodLocation(own, (address,), node.status.allocatable or {})
        self._touched[pod.uid] = programs
        return programs

    def forget(self, uid: str, attempts: Sequence[Attempt]) -> None:
        """Forgets a pod that is gone. The next `save` deletes its output."""
        self._touched.pop(uid, None)
        self._gone[uid] = [(attempt.name, attempt.number) for attempt in attempts]

    def save(self) -> None:
        """Writes what programs have written, and lets the next look-ups read the store.

        Raises StoreUnavailable and OutOfMemory.
        """
        if not (self._touched or self._gone):
            return
        outputs = [out for uid, pod in self._touched.items() for out in pod.list_outputs(uid)]
        write_outputs(self._io, outputs)
        for programs in self._touched.values():
            programs.forget_outputs()
        self._touched.clear()
        while self._gone:
            uid, attempts = self._gone.popitem()
            delete_outputs(self._io, uid, attempts)
        self._lookups.invalidate()
