"""The page in a real Chromium, without a window. Skipped where it is not installed."""

from __future__ import annotations

import csv
import json
import shutil
from xml.etree import ElementTree

import pytest
from page_reader import HOSTILE

from latentmetric.viz.report.gallery import COLUMNS
from latentmetric.viz.report.text import distinct

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")

pytestmark = pytest.mark.skipif(
    not (BROWSER and DRIVER),
    reason="chromium and chromedriver are not installed (Debian: chromium, chromium-driver)",
)

FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --disable-sync "
    "--disable-background-networking --disable-component-update --no-first-run"
)

POINT = """
const map = document.querySelector("svg.map");
map.scrollIntoView({ block: "center", behavior: "instant" });
const box = map.getBoundingClientRect();
return [box.left, box.top, box.width, box.height];
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = BROWSER
    for flag in (*FLAGS.split(), f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    driver.set_script_timeout(30)
    yield driver
    driver.quit()


@pytest.fixture
def open_page(browser):
    def opened(page, width=1280, scheme="light"):
        media = {
            "features": [
                {"name": "prefers-color-scheme", "value": scheme},
                {"name": "prefers-reduced-motion", "value": "reduce"},
            ]
        }
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        for kind in ("browser", "performance"):
            browser.get_log(kind)
        browser.get(page.path.as_uri())
        return browser

    return opened


SAVED = """
const saved = [];
const real = URL.createObjectURL;
URL.createObjectURL = (blob) => { saved.push(blob); return real.call(URL, blob); };
const element = document.querySelector(arguments[0]);
const frame = element.matches("figure") ? element : element.closest(".table");
[...frame.querySelectorAll(".exports button")].find((b) => b.textContent === arguments[1]).click();
URL.createObjectURL = real;
return saved[0].arrayBuffer().then((bytes) => new TextDecoder().decode(bytes));
"""
"""Clicks a button that saves, and returns the text of the file."""


def find(browser, selector):
    from selenium.webdriver.common.by import By

    return browser.find_elements(By.CSS_SELECTOR, selector)


def dispatch(browser, kind, x, y, **rest):
    """Send a mouse event through the browser's own input handling."""
    event = {"type": kind, "x": x, "y": y, **rest}
    browser.execute_cdp_cmd("Input.dispatchMouseEvent", event)


@pytest.mark.parametrize("which", ["digits_page", "hostile_page"])
def test_no_errors_no_requests_and_nothing_is_wider_than_the_screen(open_page, request, which):
    page = request.getfixturevalue(which)
    browser = open_page(page, width=390)
    browser.execute_script("document.querySelectorAll('details').forEach((d) => { d.open = true })")
    browser.execute_async_script("requestAnimationFrame(() => setTimeout(arguments[0], 200))")
    assert browser.get_log("browser") == []
    messages = [json.loads(line["message"])["message"] for line in browser.get_log("performance")]
    sent = [one["params"] for one in messages if one["method"] == "Network.requestWillBeSent"]
    urls = [one["request"]["url"] for one in sent if one["documentURL"].startswith("file:")]
    assert {url for url in urls if not url.startswith("data:image/png")} == {page.path.as_uri()}
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    for width in (390, 700):
        nav = find(open_page(page, width=width), "nav")[0]
        assert nav.size["height"] < 50, "the navigation is one line"


def test_labels_run_nothing_and_differ_however_short_they_are(open_page, hostile_page):
    browser = open_page(hostile_page)
    find(browser, "svg.map")[0].send_keys("n")
    assert find(browser, ".card .label")[0].get_attribute("textContent") in distinct(HOSTILE)
    cells = browser.execute_script(SAVED, "table[data-name=classes]", "CSV").splitlines()
    assert len(cells) == len(HOSTILE) + 1
    drawn = browser.execute_script(SAVED, "figure[data-name=confusion]", "SVG")
    assert "<script" not in drawn
    assert browser.execute_script("return window.hacked") is None
    texts = [text for text in ElementTree.fromstring(drawn).iter() if text.tag.endswith("text")]
    for anchor in ("end", "start"):
        names = [text.text for text in texts if text.attrib["text-anchor"] == anchor]
        assert len(set(names)) == len(names) == len(HOSTILE)
    for box in (".chooser", ".highlight"):
        options = [option.get_attribute("label") for option in find(browser, f"{box} option")]
        assert len(set(options)) == len(options) >= len(HOSTILE)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    height = "return document.querySelector('#mistakes details article').clientHeight"
    assert browser.execute_script(height) > 0, "rows that are folded away are printed"
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_pointing_at_a_point_shows_its_card_and_the_wheel_zooms(open_page, digits_page):
    browser = open_page(digits_page)
    left, top, width, height = browser.execute_script(POINT)
    (card,), (outside,) = find(browser, ".card"), find(browser, ".outside")
    across = iter(range(0, int(width), 10))
    while not card.is_displayed():
        x, y = left + next(across), top + height / 2
        dispatch(browser, "mouseMoved", x, y)
    labels = [element.text for element in find(browser, ".card .label")]
    assert len(labels) == 4, "the point's, and those of the nearest latent examples"
    assert set(labels) <= set(digits_page.map_data["labels"])
    assert len(find(browser, ".card .picture")) == 4
    dispatch(browser, "mouseMoved", left + 2, top + 2)
    assert not card.is_displayed()
    shown_first = outside.text
    dispatch(browser, "mouseWheel", x, y, deltaX=0, deltaY=-800)
    browser.execute_async_script("requestAnimationFrame(() => setTimeout(arguments[0], 50))")
    assert "points lie outside this view" in outside.text
    find(browser, "[data-zoom='0']")[0].click()
    browser.execute_async_script("requestAnimationFrame(() => setTimeout(arguments[0], 50))")
    assert outside.text == shown_first


def test_the_keyboard_steps_through_one_class_and_reads_the_matrix(open_page, digits_page):
    from selenium.webdriver.support.ui import Select

    browser = open_page(digits_page)
    Select(find(browser, ".highlight")[0]).select_by_value("7")
    (drawn,) = find(browser, "svg.map")
    left, top, _, _ = browser.execute_script(POINT)
    dispatch(browser, "mouseMoved", left + 2, top + 2)  # a mouse that rests
    seen = set()
    for _ in range(5):
        drawn.send_keys("n")
        assert find(browser, ".card .label")[0].text == "7"
        seen.add(find(browser, ".card .name")[0].text)
    assert len(seen) == 5
    drawn.send_keys("p")
    assert find(browser, ".card .name")[0].text in seen
    assert [one.text for one in find(browser, ".legend [aria-pressed='true']")] == ["7"]
    Select(find(browser, "select.view")[0]).select_by_value("learned")
    find(browser, ".layer[value=wrong]")[0].click()
    find(browser, "svg.matrix")[0].send_keys("\ue015\ue015")  # arrow down
    second = list(digits_page.section("confusion").one("svg", class_="matrix").all("title"))[1]
    assert find(browser, ".matrix-words")[0].text == second.text.replace("\N{NO-BREAK SPACE}", " ")
    assert browser.get_log("browser") == []


def test_a_heading_sorts_its_table_and_the_gallery_shows_the_class_chosen(
    open_page, digits, digits_page
):
    from selenium.webdriver.support.ui import Select

    model = digits[0]
    browser = open_page(digits_page)
    find(browser, "table.sortable thead th:nth-child(7) button")[0].click()
    cells = find(browser, "table.sortable tbody tr > :nth-child(7)")
    values = [float(cell.get_attribute("data-value")) for cell in cells]
    assert values == sorted(values, reverse=True)
    (head,) = find(browser, "table.sortable [aria-sort]")
    assert head.get_attribute("aria-sort") == "descending"
    chooser = Select(find(browser, ".chooser")[0])
    chooser.select_by_visible_text("9")
    strips = [strip for strip in find(browser, ".strip") if strip.is_displayed()]
    assert len(strips) == min(12, (model.latent_labels_ == 9).sum())
    shown = [int(strip.get_attribute("data-latent")) for strip in strips]
    assert set(model.latent_labels_[shown]) == {9}
    find(browser, ".step[data-step='1']")[0].click()
    assert chooser.first_selected_option.text == "0"
    picture = find(browser, ".mistake .picture")[0]
    number = int(picture.get_attribute("data-picture"))
    across = picture.value_of_css_property("background-position").split("%")[0]
    assert float(across) == pytest.approx(100 * (number % COLUMNS) / (COLUMNS - 1), abs=0.01)
    assert "data:image/png" in picture.value_of_css_property("background-image")


def test_every_figure_and_table_can_be_saved(open_page, digits_page):
    browser = open_page(digits_page)
    names = [figure.attributes["data-name"] for figure in digits_page.root.all("figure")]
    assert len(set(names)) == len(names) >= 6
    for name in names:
        drawn = browser.execute_script(SAVED, f"figure[data-name='{name}']", "SVG")
        root = ElementTree.fromstring(drawn)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert float(root.attrib["width"]) > 0
        assert "var(" not in drawn
    for table in digits_page.root.all("table"):
        if "aria-label" not in table.attributes:
            continue
        name = table.attributes["data-name"]
        saved = browser.execute_script(SAVED, f"table[data-name='{name}']", "CSV")
        lines = list(csv.reader(saved.removeprefix("\ufeff").splitlines()))
        assert len(lines) == len(list(table.one("tbody").all("tr"))) + 1
        assert len({len(line) for line in lines}) == 1
    script = """
    const done = arguments[0];
    const real = URL.createObjectURL;
    URL.createObjectURL = (blob) => {
      createImageBitmap(blob).then((image) => done([blob.type, image.width, image.height]));
      return real.call(URL, blob);
    };
    document.querySelector("figure[data-name=errors] .exports button").click();
    """
    kind, width, height = browser.execute_async_script(script)
    assert kind == "image/png"
    assert width > height > 300
    assert browser.get_log("browser") == []


def test_controls_have_names_and_the_theme_follows_the_system_and_then_the_reader(
    open_page, digits_page
):
    colour = "return getComputedStyle(document.body).backgroundColor"
    light = open_page(digits_page).execute_script(colour)
    browser = open_page(digits_page, scheme="dark")
    assert browser.execute_script(colour) != light
    find(browser, ".theme input")[0].click()
    assert browser.execute_script(colour) == light
    controls = find(browser, "button, select, input, summary, a, svg[tabindex]")
    assert len(controls) > 20
    for control in controls:
        assert browser.execute_script("return arguments[0].tabIndex", control) >= 0
        assert control.accessible_name or control.get_attribute("textContent").strip()
