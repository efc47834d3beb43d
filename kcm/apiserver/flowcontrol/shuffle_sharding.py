"""Deals each flow a hand of queues, so that few flows share all queues of another.

Source: staging/src/k8s.io/apiserver/pkg/util/shufflesharding, and hashFlowID in
util/flowcontrol/apf_controller.go, Kubernetes 1.36.
"""

from __future__ import annotations

import hashlib


def hash_flow(schema: str, distinguisher: str) -> int:
    """Returns 64 bits that name a flow."""
    text = f"{schema}\0{distinguisher}".encode("utf-8", "surrogateescape")
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "little")


def deal(entropy: int, deck: int, hand: int) -> list[int]:
    """Returns `hand` different numbers below `deck`, the same for the same entropy."""
    cards: list[int] = []
    for dealt in range(hand):
        entropy, card = divmod(entropy, deck - dealt)
        for smaller in sorted(cards):
            card += card >= smaller
        cards.append(card)
    return cards
