from __future__ import annotations

from contextlib import ExitStack

import pytest
from prometheus_client import CollectorRegistry

from kcm.apiserver.auth.attributes import ADMIN, User
from kcm.apiserver.http.limits import Answers, Bodies, InFlight, OpenWatches
from kcm.apiserver.http_errors import TooManyRequests

JANE, BOB, EVE = User("jane"), User("bob"), User("eve")


def test_reads_and_writes_are_counted_apart() -> None:
    flight = InFlight(2)
    with ExitStack() as stack:
        for method, user in (("GET", JANE), ("HEAD", BOB), ("POST", JANE), ("PUT", BOB)):
            stack.enter_context(flight.admit(method, user))
        assert flight.now == {"readOnly": 2, "mutating": 2}
        for method in ("GET", "PATCH"):
            with pytest.raises(TooManyRequests), flight.admit(method, EVE):
                pass
    assert flight.now == {"readOnly": 0, "mutating": 0}


def test_one_user_takes_half_of_the_places_and_masters_always_get_one() -> None:
    flight = InFlight(200)
    with ExitStack() as stack:
        for user in (EVE, BOB):
            for _ in range(100):
                stack.enter_context(flight.admit("POST", user))
            with pytest.raises(TooManyRequests), flight.admit("POST", user):
                pass
            stack.enter_context(flight.admit("GET", user))
        with pytest.raises(TooManyRequests), flight.admit("POST", JANE):
            pass
        for _ in range(50):
            stack.enter_context(flight.admit("POST", ADMIN))
    with flight.admit("POST", EVE):
        assert flight.now == {"readOnly": 0, "mutating": 1}


def test_zero_is_no_limit() -> None:
    flight = InFlight()
    with ExitStack() as stack:
        for _ in range(1000):
            stack.enter_context(flight.admit("GET", JANE))
        assert flight.now == {"readOnly": 1000, "mutating": 0}


def test_what_is_held_of_bodies_is_limited_for_each_user_and_for_all() -> None:
    bodies, part = Bodies(), 1024 * 1024
    with ExitStack() as stack:
        for user in (User(f"user-{n}") for n in range(4)):
            for _ in range(32):
                stack.enter_context(bodies.hold(user)).add(part)
            with pytest.raises(TooManyRequests), bodies.hold(user) as held:
                held.add(1)
        with pytest.raises(TooManyRequests), bodies.hold(JANE) as held:
            held.add(1)
        with bodies.hold(ADMIN) as held:
            held.add(part)
    with bodies.hold(EVE) as held:
        held.add(part)


def test_bodies_that_come_slowly_are_limited_for_each_user() -> None:
    bodies = Bodies()
    with ExitStack() as stack:
        for _ in range(Bodies.MOST_COMING):
            stack.enter_context(bodies.receive(EVE))
        with pytest.raises(TooManyRequests), bodies.receive(EVE):
            pass
        with bodies.receive(JANE), bodies.receive(ADMIN):
            pass
    with bodies.receive(EVE):
        pass


def test_a_user_has_so_many_watches_and_masters_any_number() -> None:
    registry = CollectorRegistry()
    watches = OpenWatches(2, registry)
    with ExitStack() as stack:
        for user in (JANE, JANE, BOB, ADMIN, ADMIN, ADMIN):
            stack.enter_context(watches.hold(user))
        with pytest.raises(TooManyRequests), watches.hold(JANE):
            pass
    assert registry.get_sample_value("kcm_apiserver_watches_refused_total") == 1
    with watches.hold(JANE):
        pass


def test_a_user_whose_answers_are_not_read_gets_no_more() -> None:
    answers = Answers()
    with answers.hold(EVE, Answers.MOST_OF_ONE + 1):  # alone, it may have any size
        for user in (JANE, ADMIN):
            with answers.hold(user, Answers.MOST_OF_ONE), answers.hold(user, 0):
                pass
        with pytest.raises(TooManyRequests), answers.hold(EVE, 1):
            pass
    with answers.hold(EVE, 1):
        pass
