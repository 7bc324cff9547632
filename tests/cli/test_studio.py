"""The studio answers this machine's browser, with the token, about its own folder, and nobody else about anything else."""
import http.client
import json
import threading

import pytest

from cuvil.diagnostics import CuvilError
from cuvil_cli import page
from cuvil_cli.server import Studio, serve


@pytest.fixture
def folder(tmp_path, monkeypatch):
    inside = tmp_path / "work"
    inside.mkdir()
    (inside / "model.py").write_text('def f(x):\n    """</script><script>alert(1)</script>"""\n    return x + 1\n')
    (inside / "notes.txt").write_text("not Python")
    (tmp_path / "secret.py").write_text("token = 1\n")
    bundle = tmp_path / "bundle"
    bundle.mkdir()
    (bundle / "panels.js").write_text("console.log('</script>')")
    (bundle / "panels.css").write_text("body {}")
    monkeypatch.setattr(page, "INSTALLED", bundle)
    return inside


@pytest.fixture
def studio(folder):
    server = serve(Studio(str(folder)))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def get(studio):
    port = studio.server_address[1]
    token = studio.url.partition("token=")[2]

    def get(path, token=token, host=f"127.0.0.1:{port}", method="GET"):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.putrequest(method, path, skip_host=True)
        if host is not None:
            connection.putheader("Host", host)
        if token is not None:
            connection.putheader("X-Cuvil-Token", token)
        connection.endheaders()
        answer = connection.getresponse()
        body = answer.read().decode("utf-8")
        connection.close()
        return answer.status, body, answer.headers
    return get


def test_the_page_opens_at_the_printed_address(studio, get):
    assert studio.url.startswith("http://127.0.0.1:")
    status, body, headers = get(studio.url.partition(str(studio.server_address[1]))[2], token=None)
    assert status == 200 and 'id="cuvil"' in body and 'data-path="model.py"' in body
    assert "default-src 'none'" in headers["Content-Security-Policy"] and headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Access-Control-Allow-Origin"] is None and headers["Cache-Control"] == "no-store"


def test_listens_on_loopback_only(studio):
    assert studio.server_address[0] == "127.0.0.1"


def test_panels_and_functions(get):
    assert [p["id"] for p in json.loads(get("/api/panels")[1])] == ["drilldown", "heatmap"]
    assert json.loads(get("/api/functions")[1]) == {"files": [{"path": "model.py", "functions": ["f"]}]}


def test_version_follows_the_text(get, folder):
    first = json.loads(get("/api/version?path=model.py")[1])
    (folder / "model.py").write_text("def g(x): return x\n")
    assert json.loads(get("/api/version?path=model.py")[1]) != first


@pytest.mark.parametrize("token", [None, "", "wrong", "é"])
def test_wrong_token(get, token):
    if token == "é":
        token = token.encode("utf-8").decode("latin-1")
    assert get("/api/panels", token=token)[0] == 403
    assert get("/", token=token)[0] == 403          # the header does not open the page, only the address with the token does


# A page of another site can make a browser send requests here, but not under this server's name (DNS rebinding).
@pytest.mark.parametrize("host", [None, "", "evil.example", "127.0.0.1", "127.0.0.1:1", "evil.example:80"])
def test_wrong_host(get, host):
    assert get("/api/panels", host=host)[0] == 403


@pytest.mark.parametrize("path", ["../secret.py", "%2e%2e/secret.py", "..%2fsecret.py", "/etc/passwd", "model.py/../../secret.py", "%00", "model.py%00.py",
                                  "", "nothing.py", "notes.txt", "."])
def test_nothing_outside_the_folder(get, path):
    status, body, _ = get(f"/api/view?panel=drilldown&path={path}")
    assert status == 404 and "token" not in body


def test_links_out_of_the_folder_are_not_followed(get, folder, tmp_path):
    (folder / "link.py").symlink_to(tmp_path / "secret.py")
    assert get("/api/version?path=link.py")[0] == 404


@pytest.mark.parametrize("path", ["/api/", "/api/nothing", "/nothing", "/../panels.js", "/panels.js/", "/api/panels/.."])
def test_unknown_addresses(get, path):
    assert get(path)[0] == 404


def test_only_get(get):
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        assert get("/api/panels", method=method)[0] == 501


def test_bundle_needs_no_token_and_has_its_type(get):
    status, body, headers = get("/panels.js", token=None)
    assert status == 200 and body == "console.log('</script>')" and headers["Content-Type"].startswith("text/javascript")


def test_bad_numbers(get):
    status, body, _ = get("/api/view?panel=drilldown&path=model.py&line=x")
    assert status == 422 and "number" in json.loads(body)["error"]


# Reports: one file, in which no text of the user's can end a script or load anything.
def test_report_escapes_what_it_embeds(folder):
    html = page.report('a"><b>', "drilldown", 'x"y.py', "f", {"text": "</script><!--<script>&\u2028\ud800"})
    payload = html.partition('id="cuvil-payloads">')[2].partition("</script>")[0]
    assert "<" not in payload and "&" not in payload
    assert json.loads(payload) == {"text": "</script><!--<script>&\u2028\ud800"}
    assert '<b>' not in html and "x&quot;y.py" in html
    assert html.count("</script>") == 2             # of the payload and of the bundle, whose own text is escaped
    assert "default-src &#x27;none&#x27;" in html and "sha256-" in html and "unsafe-inline" not in html
    html.encode("utf-8")


def test_report_allows_exactly_its_own_script(folder):
    import base64
    import hashlib
    import html as escapes
    html = page.report("t", "drilldown", "m.py", "f", {})
    policy = escapes.unescape(html.partition('Content-Security-Policy" content="')[2].partition('"')[0])
    script = html.partition('<script type="module">')[2].partition("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy


def test_without_a_bundle_the_message_names_the_command(monkeypatch, tmp_path):
    monkeypatch.setattr(page, "INSTALLED", tmp_path / "none")
    monkeypatch.setattr(page, "CHECKOUT", tmp_path / "none")
    with pytest.raises(CuvilError, match="make build"):
        page.bundle()


def test_a_port_in_use_is_a_message(studio, folder):
    with pytest.raises(CuvilError, match="cannot listen on port"):
        serve(Studio(str(folder)), studio.server_address[1])
