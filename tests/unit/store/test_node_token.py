from __future__ import annotations

from kcm.store.node_token import token_of

KEY = b"k" * 32


def test_a_token_is_for_one_node_at_one_address() -> None:
    token = token_of(KEY, "n1", "10.0.0.1", 10250)
    assert token == token_of(KEY, "n1", "10.0.0.1", 10250)
    others = {
        token_of(KEY, "n2", "10.0.0.1", 10250),
        token_of(KEY, "n1", "10.0.0.2", 10250),
        token_of(KEY, "n1", "10.0.0.1", 10251),
        token_of(b"x" * 32, "n1", "10.0.0.1", 10250),
    }
    assert len(others | {token}) == 5
