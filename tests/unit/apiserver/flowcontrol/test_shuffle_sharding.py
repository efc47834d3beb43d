from __future__ import annotations

from itertools import permutations

import pytest

from kcm.apiserver.flowcontrol.shuffle_sharding import deal, hash_flow

# TestDealer cases of staging/src/k8s.io/apiserver/pkg/util/shufflesharding/shufflesharding_test.go,
# Kubernetes 1.36.


@pytest.mark.parametrize(("deck", "hand"), [(64, 6), (128, 6), (16, 4), (5, 5), (1, 1)])
def test_a_hand_has_different_cards_of_the_deck(deck: int, hand: int) -> None:
    for flow in range(500):
        cards = deal(hash_flow("schema", str(flow)), deck, hand)
        assert len(set(cards)) == hand
        assert all(0 <= card < deck for card in cards)


def test_every_hand_is_dealt_equally_often() -> None:
    hands = [tuple(deal(entropy, 5, 3)) for entropy in range(60)]
    assert sorted(hands) == sorted(permutations(range(5), 3))


def test_flows_are_told_apart_by_schema_and_distinguisher() -> None:
    hashes = {hash_flow("a", "b"), hash_flow("ab", ""), hash_flow("", "ab"), hash_flow("a", "c")}
    assert len(hashes) == 4
    assert hash_flow("a", "b") == hash_flow("a", "b") < 2**64
