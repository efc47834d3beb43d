"""What the node says of its container runtime, in the words of upstream's updateRuntimeUp."""

from __future__ import annotations

from kcm import errors
from kcm.kubelet.cri import RuntimeStatus
from kcm.kubelet.loop.pleg import UNHEALTHY_THRESHOLD, RuntimeState
from kcm.testing.clock import FakeClock

NOT_YET = "container runtime status check may not have completed yet"
GOOD = RuntimeStatus(ready=True)


class Answers:
    """A runtime that gives the answer that a test has set; None is none."""

    def __init__(self, answer: RuntimeStatus | None) -> None:
        self.answer = answer

    def status(self) -> RuntimeStatus:
        if self.answer is None:
            raise errors.ContainerRuntimeError("rpc error: code = DeadlineExceeded")
        return self.answer


def state_of(answers: Answers, clock: FakeClock) -> RuntimeState:
    return RuntimeState(answers, clock)  # type: ignore[arg-type] # no more of a runtime is needed


def test_a_runtime_that_never_answered_is_not_ready_yet() -> None:
    state = state_of(Answers(None), FakeClock())
    assert state.errors() == [NOT_YET]
    state.update()
    assert state.errors() == [NOT_YET]


def test_a_runtime_that_goes_silent_is_down_after_its_time_and_back_at_once() -> None:
    clock, answers = FakeClock(), Answers(GOOD)
    state = state_of(answers, clock)
    state.update()
    assert state.errors() == []
    answers.answer = None
    clock.step(UNHEALTHY_THRESHOLD)
    state.update()
    assert state.errors() == []
    clock.step(1)
    assert state.errors() == ["container runtime is down"]
    answers.answer = GOOD
    state.update()
    assert state.errors() == []


def test_a_runtime_says_what_it_lacks() -> None:
    answers = Answers(RuntimeStatus(ready=True, network_fault="NetworkReady=false reason:x"))
    state = state_of(answers, FakeClock())
    state.update()
    assert state.errors() == ["container runtime network not ready: NetworkReady=false reason:x"]
    answers.answer = RuntimeStatus(ready=False, message="RuntimeReady=false reason:y")
    state.update()
    assert state.errors() == ["container runtime not ready: RuntimeReady=false reason:y"]
