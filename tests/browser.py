"""The system's Chromium, driven by Selenium, for tests of pages.

Nothing is downloaded: browser and driver are those of the system. A test that asks for it is skipped, with a
reason, where one of them is missing.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

__all__ = ["CONTRASTS", "WINDOW", "BrowserPage", "started_browser"]
WINDOW = (1280, 900)
FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-dev-shm-usage", "--hide-scrollbars", "--force-device-scale-factor=1"),
)


@contextmanager
def started_browser(profile: Path) -> Iterator[Chrome]:
    """Start a browser without a window and end it afterwards.

    Parameters
    ----------
    profile : Path
        An empty folder for its files.
    """
    webdriver = pytest.importorskip("selenium.webdriver", reason="no selenium: pip install 'crfit[test]'")
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if browser is None or driver is None:
        pytest.skip(
            "no Chromium with its driver; Debian has them in the packages chromium and chromium-driver"
        )
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for flag in (*FLAGS, f"--user-data-dir={profile}", f"--window-size={WINDOW[0]},{WINDOW[1]}"):
        options.add_argument(flag)
    # What the page says and what it asks the network for.
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    chrome = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=driver))
    try:
        yield chrome
    finally:
        chrome.quit()


class BrowserPage:
    """A page in the browser, and what a reader does with it."""

    def __init__(self, driver, file: Path):
        self.driver, self.file = driver, file

    def open(self):
        """Open the file in a wide window, in light colours."""
        self.size(WINDOW[0])
        self.prefer("light")
        for kind in ("browser", "performance"):
            self.driver.get_log(kind)
        self.driver.get(self.file.as_uri())
        return self

    def complaints(self):
        """What the browser says about the page."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def asked(self):
        """Addresses that the page asked for, outside of itself.

        The browser's start page may still be loading when the log begins: only requests of this page count.
        """
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        sent = [event["params"] for event in events if event["method"] == "Network.requestWillBeSent"]
        here = self.file.as_uri()
        ours = [one["request"]["url"] for one in sent if one["documentURL"].partition("#")[0] == here]
        assert here in [url.partition("#")[0] for url in ours]
        return [url for url in ours if not url.startswith(("file:", "data:"))]

    def size(self, width):
        size = {"width": width, "height": WINDOW[1], "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def prefer(self, scheme):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def find(self, selector):
        return self.driver.find_element("css selector", selector)

    def until(self, condition, seconds=10):
        from selenium.webdriver.support.ui import WebDriverWait

        return WebDriverWait(self.driver, seconds, poll_frequency=0.05).until(lambda _: condition())

    def settled(self, condition):
        """Whether something comes true within a second."""
        from selenium.common.exceptions import TimeoutException

        try:
            return self.until(condition, seconds=1)
        except TimeoutException:
            return False


# Contrast of each text against what is behind it (WCAG 2.2), the lowest first, with transparent colours and
# opacity as they are seen; texts of a chart stand on the ground of the page.
CONTRASTS = """
const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
function rgba(colour) {
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = colour;
  canvas.fillRect(0, 0, 1, 1);
  return [...canvas.getImageData(0, 0, 1, 1).data];
}
function luminance(colour) {
  const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const [r, g, b] = colour.map((v) => linear(v / 255));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
const over = (colour, share, below) => below.map((v, i) => share * colour[i] + (1 - share) * v);
function ground(element) {
  if (!element) throw new Error("no ground");
  const [r, g, b, alpha] = rgba(getComputedStyle(element).backgroundColor);
  return alpha === 255 ? [r, g, b] : over([r, g, b], alpha / 255, ground(element.parentElement));
}
function opacity(element) {
  return element ? Number(getComputedStyle(element).opacity) * opacity(element.parentElement) : 1;
}
const texts = [...document.querySelectorAll("body *")].filter((e) =>
  !e.closest("script, .hoverlayer, [hidden]") && e.getClientRects().length &&
  [...e.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.textContent.trim()));
return texts.map((e) => {
  const style = getComputedStyle(e);
  const below = ground(e);
  const [r, g, b, alpha] = rgba(e.closest("svg") ? style.fill : style.color);
  const ink = over([r, g, b], (alpha / 255) * opacity(e), below);
  const [low, high] = [luminance(ink), luminance(below)].sort((x, y) => x - y);
  const ratio = (high + 0.05) / (low + 0.05);
  return { ratio, text: e.textContent.slice(0, 30), kind: e.getAttribute("class") };
}).sort((one, other) => one.ratio - other.ratio);
"""
