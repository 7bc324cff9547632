"""Views: what a panel shows, as one payload of protocol.py. One file per panel; nothing is drawn here and nothing computed there.

    view(session, ViewRequest("drilldown", "model.py", Position(12, 5)))

A panel module has INFO and `payload(subject)`. A new panel is one file and its line in PANELS. Refusals are CuvilErrors only
when there is nothing at all to show; a stage that cannot be made is a sentence in the payload, and what comes before it is shown.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from cuvil.diagnostics import CuvilError

from ..protocol import DrilldownPayload, HeatmapPayload, ViewRequest
from . import drilldown, heatmap
from .subject import subject

if TYPE_CHECKING:
    from ..session import Session

PANELS = (drilldown, heatmap)


def view(session: Session, request: ViewRequest) -> DrilldownPayload | HeatmapPayload:
    """The payload of a panel for the function at a position, or the named one. CuvilError: no such panel, file or function."""
    panel = next((p for p in PANELS if p.INFO.id == request.panel), None)
    if panel is None:
        raise CuvilError(f"there is no panel {request.panel!r}", expected=f"one of: {', '.join(p.INFO.id for p in PANELS)}")
    about = subject(session, request)
    if panel.INFO.id not in about.payloads:
        about.payloads[panel.INFO.id] = panel.payload(about)
    return about.payloads[panel.INFO.id]
