"""The settings of informers, each with its unit and its reason."""

from __future__ import annotations

from dataclasses import dataclass

from kcm.errors import ConfigurationError


@dataclass(frozen=True, slots=True, kw_only=True)
class InformerOptions:
    """How informers read, retry and notify. Times are in seconds unless named otherwise.

    Raises: ConfigurationError if a setting is out of range or contradicts another.
    """

    # The longest blocking read, in milliseconds. It is below the socket timeout (3 s), so that a
    # read without changes is not taken for a dead connection. It is also the longest wait of a late
    # informer for its first list, and of a shutdown for the thread.
    block_ms: int = 1000
    # The pause after a read that returned entries, so that a burst costs one read and not one per
    # entry. There is no pause while a sync waits for fresh caches.
    merge_seconds: float = 0.002
    # The pause after `read_burst` such reads in a row: an idle process sees a change at once, a
    # busy one reads many at a time.
    read_interval: float = 0.01
    read_burst: int = 8
    # Whether each sync reads the watch to its end before it begins. The thread then reads only to
    # leave little for the syncs to read: every `follow_idle` seconds, or every `follow_busy` while
    # a read returns `busy_entries` or more.
    pull: bool = False
    follow_idle: float = 1.0
    follow_busy: float = 0.1
    busy_entries: int = 100
    # Whether there are threads that read and notify. Without them, the factory's `read_now` does
    # both, and handlers are called in its thread; nothing is resynced.
    threaded: bool = True
    # The back-off of a list that failed or has to be repeated (410, new epoch). Each wait is
    # lengthened by a random share of itself, up to the jitter. Upstream waits 0.8 to 30 s, and
    # resets after two minutes: if a server restarts several times in a minute, every cache, and so
    # every sync, would be delayed by half a minute.
    list_backoff_initial: float = 0.1
    list_backoff_max: float = 2.0
    list_backoff_reset: float = 30.0
    list_backoff_jitter: float = 0.5
    # The notifications that may wait for one handler before it counts as an overflow (upstream's
    # initialBufferSize).
    handler_queue_size: int = 1024
    # The resync period of handlers without one of their own; 0 is never.
    default_resync: float = 0.0
    # Whether to keep the first encoding of every cached object, for the factory's check_mutations.
    # It is slow and meant for tests.
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

    @staticmethod
    def _require(holds: bool, message: str) -> None:
        if not holds:
            raise ConfigurationError(f"informers: {message}")
