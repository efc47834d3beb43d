"""What a write costs that replicas must have, as a ratio to one that they need not have.

    python -m tests.chaos.replication_cost

One master with two replicas runs here. Rounds of creates with either durability take turns, so that
a busy machine slows both.
"""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path

from kcm.api.core_v1 import ConfigMap, Namespace
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.redisio import RedisIO
from kcm.settings import Settings
from kcm.store import Store
from tests.integration.redisio.replicas import Replicas, running_replicas

ROUNDS, CREATES = 9, 400


def measure(store: Store, writers: int, name: str) -> float:
    """Returns the seconds in which so many threads create CREATES objects together."""

    def create(writer: int) -> None:
        for number in range(CREATES // writers):
            meta = ObjectMeta(name=f"{name}-{writer}-{number}", namespace="default")
            store.create(ConfigMap(metadata=meta))

    threads = [threading.Thread(target=create, args=(writer,)) for writer in range(writers)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - began


def compare(replicas: Replicas, writers: int) -> str:
    took: dict[str, list[float]] = {"local": [], "replicated": []}
    for number in range(ROUNDS):
        for durability, seconds in took.items():
            settings = Settings(redis_url=f"unix://{replicas.link}", redis_durability=durability)
            with closing(RedisIO(settings)) as io:
                name = f"{durability}-{writers}-{number}"
                seconds.append(measure(Store(io), writers, name))
    ratios = [b / a for a, b in zip(took["local"], took["replicated"], strict=True)]
    milliseconds = {name: statistics.median(s) / CREATES * 1000 for name, s in took.items()}
    return (
        f"{writers} writers: {milliseconds['local']:.2f} and {milliseconds['replicated']:.2f} ms "
        f"a create, {statistics.median(ratios):.2f} times as long "
        f"({min(ratios):.2f} to {max(ratios):.2f})"
    )


def main() -> None:
    with (
        tempfile.TemporaryDirectory(prefix="kcm-replication-") as folder,
        running_replicas(Path(folder)) as replicas,
    ):
        with closing(replicas.connect()) as io:
            Store(io).create(Namespace(metadata=ObjectMeta(name="default")))
        for writers in (1, 8):
            print(compare(replicas, writers), flush=True)  # noqa: T201 - a command


if __name__ == "__main__":
    main()
