"""Show what functions become: kernels, what they cost, and why ops were or were not fused.

examples:
  cuvil explain model.py                  the decorated functions, or all with tensor code
  cuvil explain model.py:Block.forward --dim B=8 --dim T=512
  cuvil explain --mapping                 how each kind of Python syntax becomes IR
  cuvil explain --mapping --check model.py   proves that no op lost its place on the way to the kernels"""
from __future__ import annotations

import argparse
import json
from collections.abc import Mapping

from cuvil.diagnostics import CuvilError

from ..target import Target, chosen, opened, parse
from ..terminal import plural, table


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", nargs="?", metavar="FILE[:function]")
    parser.add_argument("--dim", action="append", default=[], metavar="NAME=SIZE", help="size of a symbol, for the numbers")
    parser.add_argument("--mapping", action="store_true", help="print how kinds of syntax become IR forms")
    parser.add_argument("--check", metavar="FILE", help="with --mapping: check that names, lines and columns survive all passes")
    parser.add_argument("--format", choices=("text", "json"), default="text")


def run(args: argparse.Namespace) -> int:
    if args.mapping or args.check:
        return _fidelity(args, parse(args.check)) if args.check else _mapping(args)
    if not args.source:
        raise CuvilError("nothing to explain", expected="FILE, FILE:function, or --mapping", hint="cuvil explain model.py")
    from cuvil_ide.views.subject import failed
    target, given = parse(args.source), named_sizes(args.dim)
    session = opened(target)
    explained, refused = [], 0
    for function in chosen(session.facts(target.path), target):
        try:
            explained.append(explain(session, target.path, function.name, given))
        except Exception as error:           # a refusal, or a defect of ours: the others are explained all the same
            error = failed(error, function)
            refused += 1
            explained.append({"function": function.name, "place": str(function.header), "refused": str(error)})
    if not explained:
        raise CuvilError(f"{target.path} has no function with tensor code", expected="a function decorated with @cu.compile, or annotated")
    if args.format == "json":
        print(json.dumps({"version": 1, "path": target.path, "functions": explained}, indent=2))
    else:
        print("\n\n".join(_text(e) for e in explained))
    return 1 if refused else 0


def named_sizes(pairs: list[str]) -> dict[str, int]:
    given = {}
    for pair in pairs:
        name, equals, size = pair.partition("=")
        if not equals or not name.isidentifier() or not size.isdigit() or int(size) < 1:
            raise CuvilError(f"--dim {pair}", expected="NAME=SIZE with a size of at least 1, as in --dim B=8")
        given[name] = int(size)
    return given


def explain(session, path: str, name: str, given: Mapping[str, int]) -> dict:
    """Kernels, costs and decisions of one function as plain data; CuvilError when it cannot be compiled."""
    from cuvil.cost import cost_of_graph, cost_of_kernel, detect, example_sizes, free_symbols
    from cuvil.cost.counts import unfused
    from cuvil.cost.lines import lines_of
    facts, stages, machine = session.function(path, name), session.stages(path, name), detect()
    graph = stages.kernels
    function = graph.function
    dims = example_sizes(free_symbols(function), given)
    _ = stages.at(**dims).kernels            # numbers for sizes that the code cannot have would be wrong numbers

    def cost(symbolic) -> dict:
        c = symbolic.at(dims)
        return {"flops": c.flops, "read": c.read, "written": c.written, "bytes": c.bytes, "intensity": c.intensity,
                "bound": machine.bound(c.intensity), "seconds": machine.seconds(c.flops, c.bytes),
                "formula": {"flops": str(symbolic.flops), "bytes": str(symbolic.bytes)}}

    def shown(id: int) -> str:
        op = function.by_id[id]
        return f"%{id} {op.label or op.name}"

    return {
        "function": name, "place": str(facts.header), "ops": sum(1 for op in function.body if op.name != "constant"),
        "signature": {"inputs": [f"{op.label or op.attr('name')}: {op.type}" for op in function.inputs],
                      "parameters": len(function.parameters), "results": [str(function.by_id[r].type) for r in function.results]},
        "dims": dims, "examples": sorted(set(dims) - set(given)), "machine": str(machine), "ridge": machine.ridge,
        "kernels": [{"name": k.name, "kind": k.kind, "ops": [shown(i) for i in k.ops], "lines": sorted(lines_of(k.origins, facts.span)),
                     **cost(cost_of_kernel(function, k))} for k in graph.kernels],
        "total": cost(cost_of_graph(graph)), "unfused": cost(unfused(function)),
        "decisions": [{"producer": shown(d.producer), "consumer": shown(d.consumer), "fused": d.fused, "reason": d.reason,
                       "bytes": _number(d.bytes, dims)}
                      for d in graph.decisions if function.by_id[d.producer].name != "constant"],
    }


def _number(dim, dims: Mapping[str, int]) -> int:
    from cuvil.cost import number
    return number(dim, dims)


def _text(e: dict) -> str:
    if "refused" in e:
        return f"{e['function']}  ({e['place']})\n  cannot be compiled: {e['refused']}"
    from cuvil_ide.views.scale import label
    signature = f"({', '.join(e['signature']['inputs'])}) -> {', '.join(e['signature']['results'])}"
    lines = [f"{e['function']}{signature}  ({e['place']})",
             f"  {plural(e['ops'], 'op')} → {plural(len(e['kernels']), 'kernel')} · {label(e['total']['flops'], 'FLOP')} · {label(e['total']['bytes'], 'B')}"
             f" · {label(e['total']['intensity'], 'FLOP/B')} · at least {label(e['total']['seconds'], 's')}"]
    if e["dims"]:
        lines.append("  sizes: " + ", ".join(f"{k} = {v}{' (example)' if k in e['examples'] else ''}" for k, v in e["dims"].items()))
    lines += [f"  machine: {e['machine']}", ""]
    rows = [(k["name"], k["kind"], str(len(k["ops"])), label(k["flops"], "FLOP"), label(k["read"], "B"), label(k["written"], "B"),
             label(k["intensity"], "FLOP/B"), k["bound"], ",".join(map(str, k["lines"]))) for k in e["kernels"]]
    lines.append(_indent(table(rows, ("kernel", "kind", "ops", "work", "read", "written", "intensity", "bound", "lines"), frozenset(range(2, 7)))))
    saved = e["unfused"]["bytes"] - e["total"]["bytes"]
    if saved > 0:
        lines.append(f"\n  fusion saves {label(saved, 'B')} of {label(e['unfused']['bytes'], 'B')} of traffic")
    for fused, title in ((True, "fused"), (False, "not fused")):
        rows = [(f"{d['producer']} → {d['consumer']}", d["reason"], label(d["bytes"], "B") if d["bytes"] else "")
                for d in e["decisions"] if d["fused"] is fused]
        if rows:
            lines.append(f"\n  {title}\n" + _indent(table(rows), 4))
    return "\n".join(lines)


def _mapping(args: argparse.Namespace) -> int:
    from cuvil.frontends.python.mapping import MAPPING
    rows = [tuple(str(cell) for cell in _row(entry)) for entry in MAPPING]
    if args.format == "json":
        print(json.dumps({"version": 1, "mapping": [{"node": r[0], "form": r[1]} for r in rows]}, indent=2))
    else:
        print(table(rows, ("syntax", "becomes")))
    return 0


def _row(entry) -> tuple:
    import dataclasses
    return dataclasses.astuple(entry) if dataclasses.is_dataclass(entry) else tuple(entry)


def _fidelity(args: argparse.Namespace, target: Target) -> int:
    """Every op after every pass has a place in a file's text, and every name the user gave a kept value is still there."""
    session = opened(target)
    report, lost = [], 0
    for function in chosen(session.facts(target.path), target):
        try:
            history = session.stages(target.path, function.name).optimized.history
        except CuvilError as error:
            report.append({"function": function.name, "refused": str(error), "stages": []})
            continue
        stages = [{"stage": name, **audit(after, session.source(target.path), history[0][1])} for name, after in history]
        lost += sum(len(s["lost"]) for s in stages)
        report.append({"function": function.name, "refused": "", "stages": stages})
    if args.format == "json":
        print(json.dumps({"version": 1, "path": target.path, "ok": not lost, "functions": report}, indent=2))
        return 1 if lost else 0
    for entry in report:
        if entry["refused"]:
            print(f"{entry['function']}: not compiled: {entry['refused']}")
            continue
        rows = [(s["stage"], str(s["ops"]), str(s["placed"]), str(s["named"]), "; ".join(s["lost"]) or "-") for s in entry["stages"]]
        print(f"{entry['function']}\n{_indent(table(rows, ('after', 'ops', 'with a place', 'with a name', 'lost'), frozenset({1, 2, 3})))}")
    print(f"places and names lost on the way: {lost}" if lost else "every op has its place in the source and its name after every pass")
    return 1 if lost else 0


def audit(function, source, captured=None) -> dict:
    """ops, how many have a place and a name, and what was lost: an op without a place, a place that is not in the text, and a value that
    was named when it was captured and is not any more (an id means one value through all passes)."""
    names = {op.id: op.label for op in captured.ops if op.label} if captured is not None else {}
    lost, placed, named, ops = [], 0, 0, 0
    for op in function.body:
        ops += 1
        named += bool(op.label)
        if op.id in names and op.label != names[op.id]:
            lost.append(f"%{op.id} {op.name}: its name {names[op.id]}")
        if op.origins and all(o.span.path != source.path or _stands(o.span, source) for o in op.origins):
            placed += 1
        else:
            lost.append(f"%{op.id} {op.name}: its place")
    return {"ops": ops, "placed": placed, "named": named, "lost": lost}


def _stands(span, source) -> bool:
    """The span is a piece of the text: its lines are there, its columns are on them, and something stands between them."""
    return (1 <= span.line <= span.end_line <= len(source.index) and span.column <= len(source.line(span.line))
            and span.end_column <= len(source.line(span.end_line)) and source.slice(span).strip() != "")


def _indent(text: str, by: int = 2) -> str:
    return "\n".join(" " * by + line for line in text.splitlines())
