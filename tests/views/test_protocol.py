"""Payload types are declared once: the TypeScript in the repository is what the Python declares, and JSON loses nothing."""
import dataclasses
import json
from pathlib import Path

from cuvil_ide import protocol, views

GENERATED = Path(__file__).parents[2] / "webview" / "src" / "protocol.ts"


def test_typescript_is_not_stale():
    assert GENERATED.read_text("utf-8") == protocol.typescript(), "run: python -m cuvil_ide.protocol > webview/src/protocol.ts"


def test_every_declared_type_is_listed():
    declared = {c for c in vars(protocol).values() if dataclasses.is_dataclass(c) and isinstance(c, type)}
    assert declared == set(protocol.PAYLOADS)


def test_to_json_is_plain_data():
    place = protocol.Place("a.py", protocol.Range(protocol.Position(1, 2), protocol.Position(3, 4)))
    data = protocol.to_json({"places": (place, None)})
    assert data == {"places": [{"path": "a.py", "range": {"start": {"line": 1, "column": 2}, "end": {"line": 3, "column": 4}}}, None]}
    assert json.loads(json.dumps(data)) == data


# A panel is a file here and its line in the list; the list forgets none.
def test_every_panel_is_listed():
    folder = Path(views.__file__).parent
    files = {p.stem for p in folder.glob("*.py") if "INFO = PanelInfo(" in p.read_text("utf-8")}
    assert files == {panel.__name__.rpartition(".")[2] for panel in views.PANELS}
    for panel in views.PANELS:
        assert panel.INFO.title and panel.INFO.question.endswith("?")
