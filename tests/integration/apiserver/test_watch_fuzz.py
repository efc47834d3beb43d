"""Whatever is written, cut and compacted, a client's copy is what the store has in the end."""

from __future__ import annotations

import pytest

from kcm.apiserver.objects import watching
from kcm.redisio.pipelining import PipelinedIO
from kcm.testing.waiting import let_time_pass
from tests.integration.apiserver.rewriting import Writer, check_copies, reflecting
from tests.integration.apiserver.serving import TOKEN, Live

STEPS = 150


@pytest.mark.parametrize("seed", range(3))
def test_a_reflectors_copy_is_what_the_store_has(
    api: Live, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "BOOKMARK_EVERY", 0.05)
    name = f"fuzz-{seed}"
    api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    io = PipelinedIO(api.settings)
    io.attach()
    with reflecting(lambda: api.as_user(TOKEN), name, seed) as reflectors:
        writer = Writer(api.client, io, name, reflectors, seed)
        for _ in range(STEPS):
            writer.step()
        # The server may have read each log before it was emptied.
        while not any(reflector.expired for reflector in reflectors):
            writer.compact()
            let_time_pass(0.05, "reflectors learn of it")
        check_copies(reflectors, writer)
    io.close()
    assert sum(reflector.watches for reflector in reflectors) > 2 * len(reflectors)
    assert sum(reflector.bookmarks for reflector in reflectors) > len(reflectors)
