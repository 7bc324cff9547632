"""How much of model code is understood: the share of tensor-valued expressions with a known rank and element type.

    python tools/understood.py DIR... [--files N] [--format json] [--list FILE]

DIR is an unpacked package. Read are `forward` and `__call__` of the classes in each file, and what they call in that file: methods by
`self.name(...)`, functions by their names. N files of each package are taken evenly from its sorted list of those that have a forward.

An expression is a call, an operator, a comparison, an item or an attribute; names are not counted, nor what is written to (`x[i] = y`), nor
what only stands in an annotation, a decorator or a default. It is tensor-valued
  * when its value is known to be a tensor, whether or not its rank and element type are;
  * when its value is not known and the code says it is one: a call of a function of torch that gives a tensor, a method that only tensors
    have, an operator or an item of something tensor-valued, a call of an object on `self` with a tensor-valued argument; and an attribute or
    a call of any kind that a tensor's method or a function of torch is applied to.
It is known when both the rank and the element type are. A size may stay a symbol. An expression the walk never reached is not known; the
arms of a test that is decided (`if self.training:`) never run in inference and are left out.
"""
from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path

import libcst as cst

from cuvil.frontends.python import Workspace, understood
from cuvil.frontends.python.facts import FileFacts
from cuvil.frontends.python.values import Deferred, Library, Scalar, Tensor, Unknown, Untyped, Value, Weight
from cuvil.frontends.python.workspace import dotted
from cuvil.ops import SPELLINGS
from cuvil.source import Source

COUNTED = (cst.Call, cst.BinaryOperation, cst.UnaryOperation, cst.Comparison, cst.Subscript, cst.Attribute)
TORCH = ("torch.", "F.", "nn.functional.", "torch.nn.functional.")
NO_TENSOR = frozenset(("is_tensor", "no_grad", "inference_mode", "device", "finfo", "iinfo", "Size", "autocast", "is_grad_enabled", "is_autocast_enabled",
                       "get_default_dtype", "numel", "is_floating_point", "compile", "Generator", "manual_seed", "typename", "enable_grad",
                       "split", "chunk", "unbind", "meshgrid", "tensor_split", "broadcast_tensors", "svd", "allclose", "equal", "is_complex",
                       "set_grad_enabled", "result_type", "promote_types", "can_cast", "broadcast_shapes", "is_nonzero", "unsafe_chunk", "topk", "sort"))
AMBIGUOUS = frozenset(("normal", "uniform", "random", "fill", "zero", "new", "put", "mode", "exponential", "geometric",
                       "index", "count", "copy", "item", "tolist", "size", "dim", "numel", "split", "chunk", "unbind", "is_floating_point", "stride",
                       "type", "get_device", "is_contiguous", "element_size", "nelement", "ndimension", "topk", "sort", "apply", "numpy", "format",
                       "data_ptr", "storage", "untyped_storage", "register_hook", "backward", "is_complex", "tensor_split", "to", "float", "half",
                       "eval", "pop", "update", "get", "items", "append", "extend", "max", "min", "sum", "mean", "all", "any", "replace", "lower"))
METHODS = frozenset(name.rpartition(".")[2] for name in SPELLINGS if name.startswith("torch.Tensor.")) - AMBIGUOUS


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("packages", nargs="+", type=Path)
    parser.add_argument("--files", type=int, default=0, help="of each package; 0: all")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument("--list", default="", help="print what is not known in files whose path ends so")
    options = parser.parse_args()
    report = {folder.name: measure(folder, options.files, options.list) for folder in options.packages}
    if options.format == "json":
        print(json.dumps(report, indent=2))
    else:
        for name, found in report.items():
            total = found["tensors"]
            print(f"{name}: {found['known']} of {total} ({found['known'] / max(total, 1):.1%}) in {found['files']} files"
                  f"; rank alone {found['rank']}, element type alone {found['dtype']}")
            for reason, count in list(found["reasons"].items())[:25]:
                print(f"  {count:6} {count / max(total, 1):6.1%}  {reason}")
    return 0


def measure(folder: Path, limit: int, shown: str = "") -> dict:
    """The counts of one package."""
    paths = [path for path in sorted(folder.rglob("*.py")) if "def forward(" in path.read_text("utf-8", "replace")]
    if limit and len(paths) > limit:
        paths = [paths[i * len(paths) // limit] for i in range(limit)]
    workspace, reasons, tally = Workspace(folder), Counter(), Counter()
    for path in paths:
        try:
            source = Source(str(path), path.read_text("utf-8"))
        except UnicodeDecodeError:
            continue
        facts = understood(source, workspace)
        for name, line, reason in expressions(facts):
            tally["tensors"] += 1
            if reason in ("", "rank", "dtype"):
                tally[reason or "known"] += 1
                reason = {"rank": "the element type of a tensor is not known", "dtype": "the rank of a tensor is not known"}.get(reason)
            if reason:
                reasons[reason] += 1
                if shown and str(path).endswith(shown):
                    print(f"{path.name}:{line}: {name}: {reason}", file=sys.stderr)
    return {"files": len(paths), "tensors": tally["tensors"], "known": tally["known"], "rank": tally["rank"], "dtype": tally["dtype"],
            "reasons": dict(reasons.most_common())}


def expressions(facts: FileFacts):
    """(definition, line, "" when rank and dtype are known, "rank" or "dtype" when only that is, else the reason) of each tensor-valued expression."""
    module = facts.module
    for name in forward_code(facts):
        definition, found = module.by_name[name], facts.function(name)
        if found is None or not isinstance(definition.node, cst.FunctionDef) or definition.stale:
            continue
        values = {(fact.span, fact.node): fact.value for fact in found.expressions}
        yield from ((name, line, reason) for line, reason in _Reader(definition, facts.source.path, values).read())


def forward_code(facts: FileFacts) -> list[str]:
    """Names of the definitions that a forward is, or calls by name."""
    module = facts.module
    todo = [d.name for d in module.definitions if d.kind == "function" and d.owner and d.name.rpartition(".")[2] in ("forward", "__call__")]
    seen: dict[str, None] = {}
    while todo:
        name = todo.pop()
        definition = module.by_name.get(name)
        if name in seen or definition is None or definition.kind != "function" or not isinstance(definition.node, cst.FunctionDef):
            continue
        seen[name] = None
        for node in definition.tree.walk():
            if isinstance(node, cst.Call):
                called = dotted(node.func)
                if called.startswith("self.") and called.count(".") == 1:
                    todo.append(f"{definition.owner}.{called[5:]}")
                elif called and "." not in called:
                    todo.append(called)
    return sorted(seen)


class _Reader:
    """The tensor-valued expressions of one function."""

    def __init__(self, definition, path: str, values: dict) -> None:
        self.definition, self.path, self.values = definition, path, values
        self.names: set[str] = set()                       # local names that hold something tensor-valued
        self.nodes = list(self._body())

    def _body(self):
        """Nodes of the body that may run, inner ones first."""
        tree, todo, found = self.definition.tree, [self.definition.node.body], []
        while todo:
            node = todo.pop()
            found.append(node)
            children = tree.children(node)
            if isinstance(node, (cst.If, cst.IfExp)):
                known = self.value(node.test)
                if isinstance(known, Scalar) and isinstance(known.value, bool):
                    dead = node.orelse if known.value else node.body
                    children = [child for child in children if child is not dead]
            elif isinstance(node, cst.AnnAssign):
                children = [child for child in children if child is not node.annotation]
            elif isinstance(node, (cst.FunctionDef, cst.ClassDef, cst.Lambda)):
                continue
            todo += children
        return reversed(found)

    def value(self, node: cst.CSTNode) -> Value | None:
        return self.values.get((self.definition.span(node, self.path), type(node).__name__))

    def read(self):
        nodes = self.nodes
        for _ in range(3):                                 # names flow forwards and around loops
            before, tensors = len(self.names), {}
            for node in nodes:
                tensors[id(node)] = self.tensor(node, tensors)
                self.bind(node, tensors)
            if len(self.names) == before:
                break
        applied = {id(target) for node in nodes if tensors[id(node)] for target in self.applied(node, tensors)}
        callees = {id(node.func) for node in nodes if isinstance(node, cst.Call)}
        written = {id(target.target) for node in nodes if isinstance(node, cst.Assign) for target in node.targets}
        for node in nodes:
            if not isinstance(node, COUNTED) or id(node) in callees or id(node) in written:
                continue
            value = self.value(node)
            if tensors[id(node)] or id(node) in applied and (value is None or isinstance(value, (Unknown, Untyped))):
                yield self.definition.span(node, self.path).line, state(value)

    def bind(self, node: cst.CSTNode, tensors: dict) -> None:
        if isinstance(node, cst.Assign) and tensors.get(id(node.value)):
            for target in node.targets:
                if isinstance(target.target, cst.Name):
                    self.names.add(target.target.value)

    def tensor(self, node: cst.CSTNode, tensors: dict) -> bool:
        if not isinstance(node, cst.BaseExpression):
            return False
        value = self.value(node)
        if isinstance(value, (Tensor, Weight, Deferred)):
            return getattr(value, "library", "torch") != "python"
        if value is not None and not isinstance(value, (Unknown, Untyped)):
            return False
        inside = lambda part: tensors.get(id(part), False)
        match node:
            case cst.Name(value=name):
                return name in self.names
            case cst.Call(func=func, args=args):
                called = dotted(func)
                last = called.rpartition(".")[2]
                home = self.value(func)
                if isinstance(home, Library) and not home.name.startswith(("torch.", "numpy.", "einops.")):
                    return False                          # math.sqrt, random.uniform; F of another library
                if called.startswith(TORCH) and called.count(".") <= 3:
                    return last not in NO_TENSOR and last[:1].islower() and not called.startswith(("torch.jit", "torch.cuda", "torch.compiler", "torch._"))
                if isinstance(func, cst.Attribute) and (func.attr.value in METHODS or inside(func.value) and func.attr.value in AMBIGUOUS - NOT_OF_TENSORS):
                    return True
                mine = called.startswith("self.") or isinstance(func, cst.Subscript) and dotted(func.value).startswith("self.")
                return mine and any(inside(arg.value) for arg in args)
            case cst.BinaryOperation(left=left, right=right):
                return inside(left) or inside(right)
            case cst.UnaryOperation(operator=operator, expression=inner):
                return not isinstance(operator, cst.Not) and inside(inner)
            case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(operator=operator, comparator=right)]):
                return not isinstance(operator, (cst.Is, cst.IsNot, cst.In, cst.NotIn)) and (inside(left) or inside(right))
            case cst.Subscript(value=of):
                return inside(of)
            case cst.Attribute(value=of, attr=cst.Name(value=name)):
                return name in ("T", "mT", "data") and inside(of)
        return False

    def applied(self, node: cst.CSTNode, tensors: dict) -> list[cst.CSTNode]:
        """What a tensor's method, or a function of torch, is applied to first."""
        if isinstance(node, cst.Call):
            if isinstance(node.func, cst.Attribute) and node.func.attr.value in METHODS:
                return [] if dotted(node.func).startswith(TORCH) else [node.func.value]
            if dotted(node.func).startswith(("F.", "nn.functional.")) and node.args:
                return [node.args[0].value]
        return []


NOT_OF_TENSORS = frozenset(("item", "tolist", "size", "dim", "numel", "split", "chunk", "unbind", "is_floating_point", "stride", "type", "get_device",
                            "is_contiguous", "element_size", "nelement", "ndimension", "topk", "sort", "apply", "numpy", "format", "data_ptr", "storage",
                            "untyped_storage", "register_hook", "backward", "is_complex", "tensor_split", "eval", "pop", "update", "get", "items",
                            "append", "extend", "index", "count", "replace", "lower"))


def state(value: Value | None) -> str:
    if isinstance(value, Deferred):
        value = value.tensor
    if isinstance(value, (Tensor, Weight)):
        type = value.type
        return "" if type.shape is not None and type.dtype is not None else "rank" if type.shape is not None else "dtype" if type.dtype is not None \
            else "neither rank nor element type are known"
    return value.reason if value is not None else "not reached by the walk"


if __name__ == "__main__":
    sys.exit(main())
