"""The page about a test, in a browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kcm.store.writes.observing import Author
from kcm.testing.history.page import render
from kcm.testing.history.reports import Report
from kcm.testing.history.writes import History, Mark
from tests.browser import CHROMEDRIVER, Browser, browsing
from tests.unit.testing.history.written import START, written

pytestmark = pytest.mark.skipif(not CHROMEDRIVER, reason="needs chromium and chromedriver")

HOSTILE = "</script><script>document.title='owned'</script><img src=x onerror=\"window.owned=1\">"
JOB = Author("controller", "job-controller", key="n/a")
WRITES = [
    written(1, "ADDED", data={"x": "1"}),
    written(2, data={"x": "2"}, old={"data": {"x": "1"}}, author=JOB, part="status"),
    written(3, "ADDED", name=HOSTILE, data={HOSTILE: HOSTILE}),
    written(100, "ADDED", resource="events", kind="Event", type="Normal", reason="Told",
            involvedObject={"kind": "ConfigMap", "name": "a", "namespace": "n"}, message=HOSTILE),
    written(200, "DELETED"),
]  # fmt: skip


def write_page(folder: Path) -> Path:
    history = History(WRITES, [Mark(HOSTILE, "fault", START, 3)])
    page = folder / "page.html"
    page.write_text(render(Report(history, 7, "n"), f"test {HOSTILE}", "failed", HOSTILE), "utf-8")
    return page


@pytest.fixture(scope="module")
def window() -> Iterator[Browser]:
    with browsing() as browser:
        yield browser


@pytest.fixture
def browser(window: Browser, tmp_path: Path) -> Browser:
    window.open(write_page(tmp_path))
    return window


def test_each_object_has_a_lane_and_each_write_a_place_in_it(browser: Browser) -> None:
    assert browser.count(".lane") == 2
    assert browser.count(".write") == 5
    assert browser.count("circle.added") == 2
    assert browser.count("path.event") == 1
    assert browser.count(".mark") == 1
    assert browser.text("#count").startswith("5 writes of 2 objects, 7 earlier")


def test_a_click_shows_what_a_write_changed_and_who_made_it(browser: Browser) -> None:
    browser.click("[data-rv='2']")
    detail = browser.text("#detail")
    for part in ("update configmaps/a/status", "job-controller for n/a", "data.x", "2026-01-01"):
        assert part in detail
    assert browser.text("#detail .old") == '"1"'
    assert browser.text("#detail .new") == '"2"'
    assert browser.count(".write.chosen") == 1
    browser.click("path.event")
    assert "Normal Told about ConfigMap a: </script>" in browser.text("#detail")


def test_what_a_stranger_wrote_is_only_shown(browser: Browser) -> None:
    browser.click("[data-rv='3']")
    browser.click("summary")
    assert HOSTILE in browser.text("#detail h2")
    assert browser.text("#failure") == HOSTILE
    assert browser.text("#title") == f"failed test {HOSTILE}"
    assert browser.run("return [document.title, typeof window.owned]") == [
        f"failed: test {HOSTILE}", "undefined",
    ]  # fmt: skip
    assert browser.count("img") == 0
    assert browser.count("script") == 2


def test_it_loads_nothing_and_could_not(browser: Browser) -> None:
    assert browser.run("return performance.getEntriesByType('resource').length") == 0
    forbidden = """
      const image = new Image();
      const done = new Promise((resolve) => {
        document.addEventListener("securitypolicyviolation", (event) => resolve(event.blockedURI));
      });
      image.src = "http://127.0.0.1:9/x.png";
      return done;
    """
    assert browser.run(forbidden) == "http://127.0.0.1:9/x.png"


def test_it_zooms_and_moves(browser: Browser) -> None:
    ticks = ".tick text"
    whole = browser.text(ticks)
    browser.run("document.getElementById('lanes').dispatchEvent(new WheelEvent('wheel', "
                "{deltaY: -1, clientX: 272, bubbles: true, cancelable: true}))")  # fmt: skip
    for _ in range(3):
        browser.click("#in")
    assert browser.text(ticks) != whole
    assert browser.count(".write") < 5
    browser.click("#fit")
    assert browser.text(ticks) == whole
    assert browser.count(".write") == 5
    browser.type("body", "+")
    zoomed = browser.text(ticks)
    assert zoomed != whole
    browser.type("body", "0")
    assert browser.text(ticks) == whole


def test_it_is_dragged(browser: Browser) -> None:
    browser.click("#in")
    begin = browser.text(".tick text")
    browser.run("""
      const lanes = document.getElementById("lanes");
      const send = (name, x) => lanes.dispatchEvent(
        new PointerEvent(name, { clientX: x, bubbles: true }));
      send("pointerdown", 600); send("pointermove", 500); send("pointerup", 500);
    """)
    after = browser.text(".tick text")
    assert after > begin
    browser.run("window.dispatchEvent(new PointerEvent('pointermove', {clientX: 100}))")
    assert browser.text(".tick text") == after


def test_writes_can_be_spread_by_their_order(browser: Browser) -> None:
    def places() -> list[float]:
        script = "return [...document.querySelectorAll('circle')].map((c) => +c.getAttribute('cx'))"
        return sorted(browser.run(script))

    near = places()
    assert near[1] - near[0] < 20
    browser.run(
        "const s = document.getElementById('scale'); s.value = 'order';"
        "s.dispatchEvent(new Event('change'))"
    )
    far = places()
    assert far[1] - far[0] > 80


def test_lanes_can_be_filtered_and_writes_walked_with_keys(browser: Browser) -> None:
    browser.type("#filter", "job-CONTROLLER")
    assert browser.count(".lane") == 1
    assert browser.count(".write") == 1
    browser.run("document.getElementById('filter').blur()")
    browser.type("body", "\ue014")  # the right arrow
    assert "job-controller" in browser.text("#detail")


@pytest.mark.parametrize("dark", [False, True])
def test_it_can_be_read_in_light_and_dark(tmp_path: Path, dark: bool) -> None:
    with browsing([f"--blink-settings=preferredColorScheme={0 if dark else 1}"]) as browser:
        browser.open(write_page(tmp_path))
        browser.click("[data-rv='2']")
        colour = "return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]"
        back = luminance(browser.run(colour, "body", "backgroundColor"))
        panel = luminance(browser.run(colour, "#detail", "backgroundColor"))
        assert (back < 0.1) is dark
        for selector in ("h1", ".key", ".c-event", ".c-deleted"):
            assert contrast(luminance(browser.run(colour, selector, "color")), back) >= 4.5
        for selector in ("#detail dt", "#detail .old", "#detail .new", "#detail .path"):
            assert contrast(luminance(browser.run(colour, selector, "color")), panel) >= 4.5


def luminance(colour: str) -> float:
    """Returns the relative luminance of a colour like `rgb(1, 2, 3)`, as WCAG 2 defines it."""
    values = [int(each) / 255 for each in re.findall(r"\d+", colour)[:3]]
    red, green, blue = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: float, other: float) -> float:
    """Returns the contrast ratio of two luminances, as WCAG 2 defines it."""
    return (max(one, other) + 0.05) / (min(one, other) + 0.05)
