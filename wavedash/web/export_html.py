"""One self-contained HTML file: the page with its script, its style and its data inside, which asks nobody for anything."""
from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wavedash.errors import UserError
from wavedash.web.app import STATIC
from wavedash.web.stage.protocol import plain

MARK = '<meta name="generator" content="wavedash page export">'
"""By this an export is known again, and may be replaced by another one"""
STYLE = '<link rel="stylesheet" href="/static/page.css">'
SCRIPT = '<script src="/static/page.js" defer></script>'
CHARSET = '<meta charset="utf-8">'
ICON = re.compile(r'<link rel="icon"[^>]*>\n?')
"""The picture of the tab: a file has none"""


def packed(answers: Any) -> str:
    """Gzip of JSON, in base64: numbers of curves become a fifth of what they are as text."""
    text = json.dumps(plain(answers), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode("ascii")


class PageFiles:
    """The files of the page, which ship with the package."""

    def __init__(self, folder: Path = STATIC) -> None:
        try:
            page, self.script, self.style = (_text(folder / name) for name in ("index.html", "page.js", "page.css"))
        except OSError as error:
            raise UserError(f"the files of the page are missing ({error.filename}): install the package again; in a copy of "
                            "its sources, build them by `npm ci && npm run build` in the folder page") from error
        self.page = ICON.sub("", page)

    @property
    def size(self) -> int:
        """Bytes of all of them."""
        return len((self.page + self.script + self.style).encode())

    def with_data(self, title: str, data: Mapping[str, Any]) -> bytes:
        """The file. `data` is what page/src/offline.ts reads."""
        script, style = _in_script(self.script), self.style
        if "</style" in style.lower():
            raise UserError("the style of the page cannot be put into a file: install the package again")
        policy = (f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; base-uri 'none'; "
                  "form-action 'none'")
        json_ = json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c").replace(">", "\\u003e")
        return _replaced(self.page, {
            CHARSET: f'{CHARSET}\n<meta http-equiv="Content-Security-Policy" content="{policy}">\n{MARK}',
            "<title>Wavedash</title>": f"<title>{html.escape(title)} · Wavedash</title>",
            STYLE: f"<style>{style}</style>",
            SCRIPT: f'<script type="application/json" id="offline">{json_}</script>\n<script>{script}</script>',
        }).encode()


def is_export(path: Path) -> bool:
    """Whether a file was written by this command."""
    try:
        with open(path, "rb") as file:
            return MARK.encode() in file.read(4096)
    except OSError:
        return False


def _text(path: Path) -> str:
    """A text as browsers read it, whose lines end in a line feed: its hash is that of what they see."""
    return path.read_text(encoding="utf-8").replace("\r\n", "\n")


def _replaced(page: str, parts: Mapping[str, str]) -> str:
    """The page with each of these parts, which it has once, replaced by another. What was put in is not searched."""
    pieces = re.split("(" + "|".join(map(re.escape, parts)) + ")", page)
    if sorted(piece for piece in pieces if piece in parts) != sorted(parts):
        raise UserError("index.html of the page is not the one that this version exports: install the package again")
    return "".join(parts.get(piece, piece) for piece in pieces)


def _in_script(script: str) -> str:
    """A script that ends where its element ends: in strings, which is where such text is, a backslash more changes nothing."""
    return re.sub(r"<(?=/script|!--)", r"\\x3c", script, flags=re.IGNORECASE)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'"
