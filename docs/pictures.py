"""Take the README's pictures of reports: `.venv/bin/python docs/pictures.py PAGE OUT [--section ID] ...`

Renders one page in Debian's chromium and saves a small PNG. The committed pictures were made by
    fitladder report && .venv/bin/python docs/pictures.py data/reports/smollm2_135m_cpu_rehearsal.html \
        docs/report.png --section glance
    .venv/bin/python docs/pictures.py data/reports/qwen35_4b_verified_macro_exact_cudagraph_rerun.html \
        docs/report-phone-dark.png --width 360 --height 780 --dark
    fitladder audit my_outputs.jsonl --tail 1024 --max-period 256 --report loops.html
    .venv/bin/python docs/pictures.py loops.html docs/loops.png --section timeline
"""

import argparse
import io
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

CHROMIUM = "/usr/bin/chromium"
COLOURS = 255  # a page of flat colours loses nothing that the eye misses, and most of its bytes


def main() -> int:
    """Exit code 0, or playwright's own error."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("page", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--section", help="only this section, by its id")
    parser.add_argument("--width", type=int, default=1280)
    parser.add_argument("--height", type=int, default=900, help="of the window; no section: what it shows")
    parser.add_argument("--dark", action="store_true")
    chosen = parser.parse_args()
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(
            viewport={"width": chosen.width, "height": chosen.height},
            color_scheme="dark" if chosen.dark else "light",
        )
        page.goto(chosen.page.resolve().as_uri())
        shown = page.locator(f"#{chosen.section}") if chosen.section else None
        data = shown.screenshot() if shown else page.screenshot()
        browser.close()
    Image.open(io.BytesIO(data)).convert("RGB").quantize(COLOURS, kmeans=2).save(chosen.out, optimize=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
