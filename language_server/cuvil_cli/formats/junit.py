"""`--format junit`: each file is a test case, each finding a failure of it; for CI systems that show nothing else."""
from __future__ import annotations

import xml.etree.ElementTree as xml

from ..findings import Findings


def render(findings: Findings) -> str:
    suite = xml.Element("testsuite", name="cuvil lint", tests=str(len(findings.results)), errors=str(len(findings.problems)),
                        failures=str(sum(1 for r in findings.results if r.diagnostics)))
    for result in findings.results:
        case = xml.SubElement(suite, "testcase", name=findings.relative(result.path), classname="cuvil.lint")
        if result.problem:
            xml.SubElement(case, "error", message=_clean(result.problem.message), type=result.problem.code).text = str(result.problem.span)
        for d in result.diagnostics:
            body = "\n".join([f"{d.span}: {d.message}", *(f"{e.span}: {e.text}" for e in d.evidence), f"cuvil rule {d.code}"])
            xml.SubElement(case, "failure", message=_clean(d.message), type=f"{d.code} {d.name}").text = _clean(body)
    root = xml.Element("testsuites")
    root.append(suite)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + xml.tostring(root, encoding="unicode")


def _clean(text: str) -> str:
    """Without the control characters that XML 1.0 cannot hold."""
    return "".join(c if c in "\t\n\r" or c >= " " else "�" for c in text)
