"""The informers' settings, each with its unit and its reason."""

from __future__ import annotations

from dataclasses import dataclass

from kcm.errors import ConfigurationError


@dataclass(frozen=True, slots=True, kw_only=True)
class InformerOptions:
    """How informers read, retry, notify and check. Times are seconds unless named otherwise.

    Raises: ConfigurationError if two settings contradict each other.
    """

    # Longest blocking read, in milliseconds; below the socket timeout (5 s), so
    # that silence is told from a dead link. Also the longest wait of a late
    # informer for its first list, and of a shutdown for the thread.
    block_ms: int = 1000
    # Pause after a read that brought entries, so that a burst costs one read
    # and not one per entry. Nobody pauses while a sync waits for freshness.
    merge_seconds: float = 0.002
    # Reads after entries that follow each other this fast at most, once `read_burst` of them
    # came in a row: an idle process sees a change at once, a busy one reads many at a time.
    read_interval: float = 0.01
    read_burst: int = 8
    # Whether syncs read the watch themselves, each at its start and to its end. The thread then
    # only keeps the distance small: it reads every `follow_idle` seconds, or every
    # `follow_busy` while a read brings `busy_entries` or more.
    pull: bool = False
    follow_idle: float = 1.0
    follow_busy: float = 0.1
    busy_entries: int = 100
    # A list that failed or has to be repeated (410, new epoch); each wait is
    # stretched by up to the jitter's share of itself. Upstream waits 0.8 to 30 s,
    # and forgets after two minutes: a server that restarts several times in a
    # minute would leave every cache, and so every sync, behind for half a minute.
    list_backoff_initial: float = 0.1
    list_backoff_max: float = 2.0
    list_backoff_reset: float = 30.0
    list_backoff_jitter: float = 0.5
    # A store that does not answer. Far shorter than upstream's: Redis has no
    # API server to shield, and work is to resume within seconds of its return.
    unavailable_backoff_initial: float = 0.1
    unavailable_backoff_max: float = 2.0
    # Notifications that wait for one handler before they count as overflow
    # (upstream's initialBufferSize).
    handler_queue_size: int = 1024
    # Resync of handlers that name no period of their own; 0 is never.
    default_resync: float = 0.0
    # Keep every cached object's first encoding, for the factory's check_mutations.
    # Slow, for tests.
    detect_mutations: bool = False

    def __post_init__(self) -> None:
        self._require(self.block_ms > 0, "block_ms must be above 0 ms")
        self._require(self.merge_seconds >= 0, "merge_seconds must not be negative")
        self._require(self.default_resync >= 0, "default_resync must not be negative")
        self._require(self.read_interval > 0, "read_interval must be above 0")
        self._require(self.read_burst > 0, "read_burst must be above 0")
        self._require(
            0 < self.follow_busy <= self.follow_idle,
            "follow_busy must be above 0 and at most follow_idle",
        )
        self._require(self.handler_queue_size > 0, "handler_queue_size must be above 0")
        self._require(
            0 < self.list_backoff_initial <= self.list_backoff_max,
            "list_backoff_initial must be above 0 and at most list_backoff_max",
        )
        self._require(
            0 < self.unavailable_backoff_initial <= self.unavailable_backoff_max,
            "unavailable_backoff_initial must be above 0 and at most unavailable_backoff_max",
        )

    @staticmethod
    def _require(holds: bool, message: str) -> None:
        if not holds:
            raise ConfigurationError(f"informers: {message}")
