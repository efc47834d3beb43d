from __future__ import annotations

from kcm.api.core_v1 import PodCondition
from tests.unit.simulation.life import START, Life, pod

GATE = "example.com/open"


def test_conditions_of_a_pod_that_waits_for_its_init_container() -> None:
    life = Life(pod(initContainers=[{"name": "a", "image": "i:1"}]))
    life.step(0)
    incomplete = "containers with incomplete status: [a]"
    unready = "containers with unready status: [main]"
    assert life.condition("Initialized") == ("False", "ContainersNotInitialized", incomplete)
    assert life.condition("ContainersReady") == ("False", "ContainersNotReady", unready)
    assert life.condition("Ready") == ("False", "ContainersNotReady", unready)
    assert life.condition("PodReadyToStartContainers")[0] == "False"
    assert life.condition("PodScheduled") == ("True", None, None)
    assert life.pod.status.phase == "Pending"
    assert life.pod.status.pod_ip is None
    assert life.pod.status.host_ip == "192.0.2.1"


def test_conditions_and_addresses_of_a_running_pod() -> None:
    life = Life(pod())
    life.until(2)
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")
    assert [life.condition(kind)[0] for kind in kinds] == ["True"] * 4
    status = life.pod.status
    assert (status.pod_ip, [ip.ip for ip in status.pod_ips or ()]) == ("10.0.0.1", ["10.0.0.1"])
    assert status.qos_class == "BestEffort"


def test_a_pod_in_the_hosts_network_has_the_hosts_address() -> None:
    life = Life(pod(hostNetwork=True))
    life.until(2)
    assert life.pod.status.pod_ip == "192.0.2.1"


def test_a_succeeded_pod_is_completed_and_no_longer_ready() -> None:
    life = Life(pod(restartPolicy="Never"))
    life.until(10)
    assert life.pod.status.phase == "Succeeded"
    assert life.condition("Initialized") == ("True", "PodCompleted", None)
    assert life.condition("Ready") == ("False", "PodCompleted", None)


def test_a_failed_pod_says_so_in_its_conditions() -> None:
    life = Life(pod({"outcome": "fail"}, restartPolicy="Never"))
    life.until(10)
    assert life.pod.status.phase == "Failed"
    assert life.condition("ContainersReady") == ("False", "PodFailed", None)


def test_readiness_gates_hold_the_pod_back_and_others_conditions_are_kept() -> None:
    life = Life(pod(readinessGates=[{"conditionType": GATE}]))
    life.until(2)
    missing = f'corresponding condition of pod readiness gate "{GATE}" does not exist.'
    assert life.condition("Ready") == ("False", "ReadinessGatesNotReady", missing)
    for status, ready in (("False", "False"), ("True", "True")):
        given = PodCondition(type=GATE, status=status)
        others = [c for c in life.pod.status.conditions or () if c.type != GATE]
        changed = life.pod.status.replace(conditions=[given, *others])
        life.pod = life.pod.with_status(changed)
        life.step(3)
        assert life.condition("Ready")[0] == ready
        assert life.condition(GATE)[0] == status


def test_a_condition_keeps_the_time_of_its_transition_while_its_status_stays() -> None:
    life = Life(pod({"ready-after": "5s"}))
    life.until(3)
    before = next(c for c in life.pod.status.conditions or () if c.type == "Ready")
    life.step(4)
    after = next(c for c in life.pod.status.conditions or () if c.type == "Ready")
    assert after.last_transition_time == before.last_transition_time
    life.step(8)
    ready = next(c for c in life.pod.status.conditions or () if c.type == "Ready")
    assert ready.last_transition_time is not None
    assert ready.last_transition_time.timestamp() == START + 8


def test_a_crash_loop_tells_the_wait_and_the_end_before() -> None:
    life = Life(pod({"outcome": "crash"}))
    life.until(5)
    status = (life.pod.status.container_statuses or [])[0]
    assert status.state is not None
    assert status.state.waiting is not None
    text = "back-off 10s restarting failed container=main pod=p_default(u)"
    assert (status.state.waiting.reason, status.state.waiting.message) == (
        "CrashLoopBackOff",
        text,
    )
    assert status.last_state is not None
    assert status.last_state.terminated is not None
    assert (status.last_state.terminated.exit_code, status.restart_count) == (1, 1)
    assert life.pod.status.phase == "Running"


def test_what_did_not_change_gives_an_equal_status() -> None:
    life = Life(pod())
    life.until(2)
    before = life.pod.status
    life.step(50)
    assert life.pod.status == before
