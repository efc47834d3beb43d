"""What a test can have happen to a control plane."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from kcm import errors
from kcm.store import Store
from kcm.testing.faults.agenda import Agenda
from kcm.testing.faults.chaos import KINDS, Chaos
from kcm.testing.faults.deeds import ChaosKind, Victims
from kcm.testing.faults.faults import Faults
from kcm.testing.faults.nodes import Nodes
from kcm.testing.faults.pods import Pods


class Failing:
    """The part of a ControlPlane with which a test has things fail."""

    nodes: Nodes
    pods: Pods
    _faults: Faults | None  # None if the API server is in another process
    _agenda: Agenda
    _find_store: Callable[[], Store]
    _mark_fault: Callable[[str], object]  # puts a line into the timeline

    @property
    def faults(self) -> Faults:
        """Makes requests, watches and webhooks fail. Raises ConfigurationError with real
        processes.
        """
        if self._faults is None:
            raise errors.ConfigurationError(
                'faults of requests need the API server in the test\'s process: use mode="loop"'
            )
        return self._faults

    @property
    def store(self) -> Store:
        """Its store, as its controllers have it. Raises ConfigurationError before the start."""
        return self._find_store()

    def chaos(
        self,
        seed: int = 1,
        *,
        rate: float = 6.0,
        of: Sequence[ChaosKind] = KINDS,
        for_: str | None = None,
        namespace: str | None = None,
    ) -> Chaos:
        """Returns a context in which things fail, so many a minute, as the seed has it.

        `of` are the kinds of failures, `for_` is the client whose requests fail (as in
        `faults.api`), and `namespace` that of the pods. Raises ValueError, and ConfigurationError
        with real processes.
        """
        victims = Victims(self.faults, self.nodes, self.pods, self._find_store, for_, namespace)
        generator = random.Random(seed)
        return Chaos(victims, self._agenda, generator, rate=rate, of=of, on_deed=self._mark_fault)
