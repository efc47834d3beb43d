"""What is read from /metrics/resource of a kubelet, whatever it sends."""

from __future__ import annotations

import time

import pytest

from kcm.apiserver.egress.scraping.page import NODE, Point, read_page
from kcm.kubelet.stats.resource_metrics import ResourceMetrics
from tests.unit.kubelet.stats.samples import AT, SUMMARY

MOMENT = 1_700_000_000.0
WEB = ("default/web", "main")
LABELS = 'container="main",namespace="default",pod="web"'
# As upstream's kubelet writes it.
PAGE = f"""\
# HELP container_cpu_usage_seconds_total [STABLE] Cumulative cpu time consumed in core-seconds
# TYPE container_cpu_usage_seconds_total counter
container_cpu_usage_seconds_total{{{LABELS}}} 4.710169 1699999999123
# TYPE container_memory_working_set_bytes gauge
container_memory_working_set_bytes{{{LABELS}}} 1.2537856e+07 1699999999124
container_start_time_seconds{{{LABELS}}} 1.6999999e+09
container_swap_usage_bytes{{{LABELS}}} 0 1699999999124
node_cpu_usage_seconds_total 357.35491 1699999998000
node_memory_working_set_bytes 1.616273408e+09 1699999998000
pod_cpu_usage_seconds_total{{namespace="default",pod="web"}} 4.67812 1699999999123
resource_scrape_error 0
"""


def test_a_page_of_upstreams_kubelet_is_read() -> None:
    assert read_page(PAGE.encode(), MOMENT) == {
        WEB: Point(1_699_999_999.123, 4.710169, 12_537_856, 1_699_999_900),
        NODE: Point(1_699_999_998, 357.35491, 1_616_273_408),
    }


def test_a_page_of_kcms_kubelet_is_read() -> None:
    points = read_page(ResourceMetrics(lambda: SUMMARY).page(), MOMENT)
    assert points[NODE].cpu == 7
    assert points[WEB].cpu == 2
    assert points[WEB].started == points[WEB].at == AT.timestamp()
    assert points["default/web", "side"].memory == 1024


@pytest.mark.parametrize(
    "labels",
    [
        'pod="web",namespace="default",container="main"',
        'container="main",id="4",namespace="default",pod="web",',
    ],
)
def test_labels_may_have_any_order_and_others_beside_them(labels: str) -> None:
    page = PAGE.replace(LABELS, labels)
    assert WEB in read_page(page.encode(), MOMENT)


def test_lines_without_a_time_have_that_of_the_request() -> None:
    page = b"node_cpu_usage_seconds_total 1\r\nnode_memory_working_set_bytes\t2\r\n"
    assert read_page(page, MOMENT) == {NODE: Point(MOMENT, 1, 2)}


@pytest.mark.parametrize(
    "amount",
    ["NaN", "+Inf", "-1", "1_0", "1e999", "1e19", "9" * 41, "0x10", "", "1 2 3", "0", "\u0661"],
)
def test_a_wrong_amount_costs_its_pod_and_nothing_else(amount: str) -> None:
    bad = LABELS.replace("web", "bad")
    page = PAGE + (
        f"container_cpu_usage_seconds_total{{{bad}}} {amount}\n"
        f"container_memory_working_set_bytes{{{bad}}} 1\n"
        f"container_cpu_usage_seconds_total{{{bad.replace('main', 'side')}}} 1\n"
        f"container_memory_working_set_bytes{{{bad.replace('main', 'side')}}} 1\n"
    )
    assert read_page(page.encode(), MOMENT).keys() == {WEB, NODE}


@pytest.mark.parametrize(
    "line",
    [
        b"<html><body>Unauthorized</body></html>",
        b"\xff\xfe\x00container_cpu_usage_seconds_total 1",
        b'container_cpu_usage_seconds_total{container="main",namespace="default"} 1',
        b'container_cpu_usage_seconds_total{container="main",namespace="d",pod="w\\"eb"} 1',
        b'container_cpu_usage_seconds_total{container="",namespace="default",pod="web"} 9',
        b"node_cpu_usage_seconds_total 1 99999999999999",  # no date can say this
        b"node_cpu_usage_seconds_total_more 1",
        b'node_cpu_usage_seconds_total{pod="web" 1',
    ],
)
def test_a_line_that_is_no_sample_is_passed_over(line: bytes) -> None:
    assert read_page(PAGE.encode() + line, MOMENT) == read_page(PAGE.encode(), MOMENT)
    assert read_page(line, MOMENT) == {}


@pytest.mark.parametrize(
    "piece",
    [
        b'a="', b"a", b'a="b",', b"9", b" ", b"\t", b"\n", b'container="a",',
        b'container_cpu_usage_seconds_total{', b'container_cpu_usage_seconds_total{a="a",\n',
        b'node_cpu_usage_seconds_total 999999999999999999999999999.9999999999999e999 9 9\n',
    ],
)  # fmt: skip
def test_the_time_is_linear_in_whatever_is_sent(piece: bytes) -> None:
    def take(size: int) -> float:
        page = b"container_cpu_usage_seconds_total{" + piece * (size // len(piece))
        began = time.process_time()
        assert read_page(page, MOMENT) == {}
        return time.process_time() - began

    assert take(4 * 1024 * 1024) < max(2.0, 30 * take(1024 * 1024))
