"""The system's Chromium, driven by Selenium, for tests of pages.

Nothing is downloaded: browser and driver are those of the system. A test that asks for it is skipped, with a
reason, where one of them is missing.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

__all__ = ["WINDOW", "started_browser"]
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
