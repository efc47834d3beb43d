"""The key of the nodes' APIs as it is stored."""

from __future__ import annotations

import pytest

from kcm import errors
from kcm.helpers.node_token import NAME, NAMESPACE, ensure_key, read_key
from kcm.redisio import RedisIO
from kcm.store import Store

pytestmark = pytest.mark.redis_only


def test_the_key_is_made_once(store: Store) -> None:
    assert read_key(store) is None
    key = ensure_key(store)
    assert len(key) == 32
    assert ensure_key(store) == key


@pytest.mark.parametrize("stored", ["", "a", "!"])
def test_a_key_that_cannot_be_read_is_told_as_a_refusal(
    io: RedisIO, store: Store, stored: str
) -> None:
    ensure_key(store)
    at = io.keys.object("secrets", f"{NAMESPACE}/{NAME}")
    before, _, rest = io.execute("HGET", at, "json").partition(b'"key":"')
    after = rest.partition(b'"')[2]
    io.execute("HSET", at, "json", before + b'"key":"' + stored.encode() + b'"' + after)
    assert read_key(store) is None
    with pytest.raises(errors.Forbidden, match="delete it"):
        ensure_key(store)
