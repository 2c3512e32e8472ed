"""A browser for tests, and a file opened in it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import which
from typing import Any

from support.requires import skip_unless

WAIT = 300_000  # milliseconds


def chromium() -> str | None:
    """Where a Chromium is: `LABELKIN_CHROMIUM`, or one on the path; playwright's own is found without."""
    return (
        os.environ.get("LABELKIN_CHROMIUM") or which("chromium") or which("chromium-browser") or which("google-chrome")
    )


@contextmanager
def browser() -> Iterator[Any]:
    """A headless Chromium; the test is skipped where there is none."""
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError:
        skip_unless(False, "playwright", requirement="browser")
        raise
    with sync_playwright() as driver:
        try:
            started = driver.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        except Error:
            started = None
        skip_unless(started is not None, "a Chromium that starts", requirement="browser")
        assert started is not None
        yield started
        started.close()


def new_page(started: Any, **options: Any) -> Any:
    """An empty page in a context of its own, which waits as long as a busy machine needs."""
    context = started.new_context(**options)
    context.set_default_timeout(WAIT)
    return context.new_page()


class Opened:
    """A page of a file or an address, with all that it says on the console and all that it asks for."""

    ready = "html[data-drawing]"  # there once the page can be used

    def __init__(self, started: Any, address: Path | str, *, width: int = 1440, scheme: str = "light") -> None:
        self.page = new_page(started, viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(address.as_uri() if isinstance(address, Path) else address)
        self.page.wait_for_selector(self.ready, state="attached")

    def walk(self) -> None:
        """Bring every figure near the screen, so that it is drawn."""
        self.page.evaluate(
            """async () => {
                for (const figure of document.querySelectorAll("figure[data-figure]")) {
                    figure.scrollIntoView({behavior: "instant"});
                    await new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next)));
                }
                window.scrollTo({top: 0, behavior: "instant"});
            }"""
        )
        self.page.wait_for_selector("figure:has(.plot):not([data-drawn])", state="detached")
