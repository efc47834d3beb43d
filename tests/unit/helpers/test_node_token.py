from __future__ import annotations

from kcm.helpers.node_token import derive_token

KEY = b"k" * 32


def test_a_token_is_for_one_node_at_one_address() -> None:
    token = derive_token(KEY, "n1", "10.0.0.1", 10250)
    assert token == derive_token(KEY, "n1", "10.0.0.1", 10250)
    others = {
        derive_token(KEY, "n2", "10.0.0.1", 10250),
        derive_token(KEY, "n1", "10.0.0.2", 10250),
        derive_token(KEY, "n1", "10.0.0.1", 10251),
        derive_token(b"x" * 32, "n1", "10.0.0.1", 10250),
    }
    assert len(others | {token}) == 5
