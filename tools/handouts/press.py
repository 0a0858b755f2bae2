"""From HTML to paper, through the Chromium of this machine; a page that does not fit is refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tools.chromium import FLAGS, find_chromium
from tools.say import Stop

if TYPE_CHECKING:
    from playwright.sync_api import Page

# What does not fit: boxes taller or wider than their place, words beyond their page, words over one another.
_MEASURE = """
() => {
  const found = [];
  for (const page of document.querySelectorAll(".page")) {
    const name = page.dataset.page, box = page.getBoundingClientRect(), style = getComputedStyle(page);
    const inner = {
      left: box.left + parseFloat(style.paddingLeft) - 1, right: box.right - parseFloat(style.paddingRight) + 1,
      top: box.top + parseFloat(style.paddingTop) - 1, bottom: box.bottom - parseFloat(style.paddingBottom) + 1,
    };
    for (const part of [page, ...page.querySelectorAll("main, .part, .text, .lines, pre, .blank, .vote, table")]) {
      const what = `${name} ${part.className || part.tagName}`;
      if (part.scrollHeight > part.clientHeight + 1 && getComputedStyle(part).display !== "inline")
        found.push(`${what}: ${part.scrollHeight - part.clientHeight} px too tall`);
      if (part.scrollWidth > part.clientWidth + 1 && getComputedStyle(part).display !== "inline")
        found.push(`${what}: ${part.scrollWidth - part.clientWidth} px too wide`);
    }
    const main = page.querySelector("main").getBoundingClientRect();
    for (const picture of page.querySelectorAll("svg")) {
      const frame = picture.getBoundingClientRect();
      const scale = frame.width / picture.viewBox.baseVal.width;
      for (const label of picture.querySelectorAll("text")) {
        const at = label.getBoundingClientRect(), size = parseFloat(getComputedStyle(label).fontSize) * scale;
        if (size < 7.9) found.push(`${name}: '${label.textContent}' is printed in ${(size * 0.75).toFixed(1)} pt`);
        if (at.width && (at.left < frame.left - 1 || at.right > frame.right + 1 || at.top < frame.top - 1
            || at.bottom > frame.bottom + 1)) found.push(`${name}: '${label.textContent}' is cut off by its picture`);
      }
    }
    const words = [], walker = document.createTreeWalker(page, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      if (!node.textContent.trim() || node.parentElement.closest("svg, math, style")) continue;
      const range = document.createRange();
      range.selectNodeContents(node);
      for (const at of range.getClientRects()) {
        if (at.left < inner.left || at.right > inner.right || at.top < inner.top || at.bottom > inner.bottom)
          found.push(`${name}: '${node.textContent.trim().slice(0, 30)}' leaves the page`);
        words.push([at, node]);
      }
    }
    words.forEach(([a, first], place) => {
      for (const [b, second] of words.slice(place + 1)) {
        const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const tall = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (wide > 2 && tall > 0.45 * Math.min(a.height, b.height))
          found.push(`${name}: '${first.textContent.trim().slice(0, 20)}' over '${second.textContent.trim().slice(0, 20)}'`);
      }
    });
    for (const part of page.querySelectorAll(".part"))
      if (part.getBoundingClientRect().bottom > main.bottom + 1) found.push(`${name} ${part.className}: runs into the footer`);
  }
  return found;
}
"""


class Press:
    """A browser page that prints; it may load nothing from anywhere."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self.asked: list[str] = []
        page.on("request", lambda request: self.asked.append(request.url))

    def lay_out(self, html: str) -> list[str]:
        """Show ``html`` as it will be printed; gives what does not fit, each with its page."""
        self._page.set_content(html)
        self._page.emulate_media(media="print")
        self._page.evaluate("document.fonts.ready.then(() => null)")
        return list(self._page.evaluate(_MEASURE))

    def letters(self) -> str:
        """Every letter that is to be printed."""
        return str(
            self._page.evaluate(
                "document.body.innerText + [...document.querySelectorAll('svg text')].map(t => t.textContent).join('')"
            )
        )

    def print(self) -> bytes:
        """What was laid out, as a PDF.

        Raises:
            Stop: the page asked for something from outside.
        """
        if self.asked:
            raise Stop(
                f"讲义不该从外面取东西：{self.asked}", f"A handout must ask for nothing from outside: {self.asked}"
            )
        return self._page.pdf(prefer_css_page_size=True, print_background=True)

    def screenshots(self, folder: Path, name: str) -> list[Path]:
        """Each page as a picture, for a person to look at."""
        folder.mkdir(parents=True, exist_ok=True)
        taken = []
        for page in self._page.query_selector_all(".page"):
            taken.append(folder / f"{name}.{page.get_attribute('data-page')}.png")
            page.screenshot(path=taken[-1])
        return taken


@contextmanager
def press() -> Iterator[Press]:
    """A press in a headless Chromium with an empty profile.

    Raises:
        Stop: there is no Chromium, ``CHROMIUM`` names none, or there is no Playwright to drive it.
    """
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise Stop(
            "缺少 playwright：make handouts 会装好它；或者先运行 python3 -m tools.environment --dev。",
            "playwright is missing: make handouts installs it, or run python3 -m tools.environment --dev first.",
        ) from None
    chromium = find_chromium()
    if chromium is None:
        raise Stop(
            "没有找到 Chromium、Chrome 或 Edge：请先安装，或者用环境变量 CHROMIUM 指明它在哪里。",
            "No Chromium, Chrome or Edge found: install one first, or name it in the environment variable CHROMIUM.",
        )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        context = browser.new_context(offline=True, viewport={"width": 794, "height": 1123}, device_scale_factor=1.5)
        yield Press(context.new_page())
        browser.close()
