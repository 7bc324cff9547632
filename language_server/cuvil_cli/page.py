"""The HTML around the panels: for the studio (assets and data over loopback HTTP) and for a report (everything in one file).

Both load the same built bundle, panels.js and panels.css: from cuvil_cli/studio in an installed package, from webview/dist in a
checkout. No text of the user's reaches HTML unescaped, and both pages carry a Content-Security-Policy that names what may run.
"""
from __future__ import annotations

import base64
import hashlib
import html
import json
from dataclasses import dataclass
from pathlib import Path

from cuvil.diagnostics import CuvilError

INSTALLED = Path(__file__).parent / "studio"
CHECKOUT = Path(__file__).parents[2] / "webview" / "dist"


@dataclass(frozen=True)
class Bundle:
    script: Path
    style: Path


def bundle() -> Bundle:
    """The built panels; CuvilError that names the build command when they are not there."""
    for folder in (INSTALLED, CHECKOUT):
        found = Bundle(folder / "panels.js", folder / "panels.css")
        if found.script.is_file() and found.style.is_file():
            return found
    raise CuvilError("the panels are not built", expected=f"panels.js and panels.css in {INSTALLED} or {CHECKOUT}",
                     hint="make build (in a checkout), or pip install --force-reinstall cuvil")


STUDIO_POLICY = ("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; font-src 'self'; "
                 "base-uri 'none'; form-action 'none'; frame-ancestors 'none'")


def studio(title: str, token: str, panel: str, path: str, function: str) -> str:
    """The page at `/`. It asks for everything else with the token in a header."""
    return _page(title, _root("studio", panel, path=path, function=function, token=token),
                 '<link rel="stylesheet" href="panels.css">', '<script type="module" src="panels.js"></script>')


def report(title: str, panel: str, path: str, function: str, data: object) -> str:
    """One page that needs nothing but itself. data: what the report host of the bundle reads, as JSON."""
    built = bundle()
    style = built.style.read_text("utf-8").replace("</style", "<\\/style")
    script = built.script.read_text("utf-8").replace("</script", "<\\/script").replace("<!--", "<\\!--")
    policy = (f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:; base-uri 'none'; form-action 'none'")
    meta = f'<meta http-equiv="Content-Security-Policy" content="{html.escape(policy)}">'
    payloads = f'<script type="application/json" id="cuvil-payloads">{embed(data)}</script>'
    return _page(title, _root("report", panel, path=path, function=function) + payloads, f"{meta}<style>{style}</style>",
                 f'<script type="module">{script}</script>')


def embed(data: object) -> str:
    """JSON that can stand in a <script>: nothing in it can end the element or start a comment."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return text.translate(_ESCAPES)


_ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"} | {c: f"\\u{c:04x}" for c in range(0xD800, 0xE000)}


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode()}'"


def _root(host: str, panel: str, **data: str) -> str:
    attributes = "".join(f' data-{name}="{html.escape(value)}"' for name, value in data.items())
    return f'<div id="cuvil" data-host="{host}" data-panel="{html.escape(panel)}"{attributes}></div>'


def _page(title: str, body: str, head: str, tail: str) -> str:
    return (f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">'
            f'<title>{html.escape(title)}</title>{head}</head>\n<body>{body}{tail}</body></html>\n')
