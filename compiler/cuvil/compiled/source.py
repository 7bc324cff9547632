"""Where a function is written: the text of its file, if that still says what the function does."""
from __future__ import annotations

import ast
import inspect
import linecache
from builtins import compile as to_code
from collections.abc import Callable
from typing import Any

from ..diagnostics import CuvilError
from ..source import Source
from .arguments import is_value


def source_of(function: Callable[..., Any]) -> Any:
    """The text of the file a function stands in, as it was when the function was made; CuvilError when that cannot be had."""
    code = function.__code__
    name = function.__qualname__
    if code.co_qualname != name:
        raise CuvilError(f"{name} is wrapped by another decorator", expected="the function itself", hint="put @cu.compile closest to the function")
    if "<locals>" in name or "<lambda>" in name:
        raise CuvilError(f"{name} is defined inside a function", expected="a function at the top level of a file",
                         hint="move it to module level; what it closes over becomes arguments")
    linecache.checkcache(code.co_filename)
    text = "".join(linecache.getlines(code.co_filename))
    if not text:
        raise CuvilError(f"the source of {name} is not there: {code.co_filename} cannot be read", expected="a function in a file")
    if not _still_says(text, code):
        raise CuvilError(f"{code.co_filename} has changed since {name} was imported", hint="import it again, then compile")
    check_constants(function, text)
    return Source(code.co_filename, text)


def _still_says(text: str, code: Any) -> bool:
    """The text still compiles to this very code, wherever it stands in the file."""
    try:
        todo = [to_code(text, code.co_filename, "exec", dont_inherit=True, flags=code.co_flags & 0x1FF0000)]
    except (SyntaxError, ValueError):
        return False
    while todo:
        each = todo.pop()
        if each.co_qualname == code.co_qualname and each.co_code == code.co_code and each.co_names == code.co_names:
            return True
        todo += [constant for constant in each.co_consts if inspect.iscode(constant)]
    return False


def check_constants(function: Callable[..., Any], text: str) -> None:
    """Numbers and strings that the function reads from its module are still those the source gives them; CuvilError when not."""
    read = {name: value for name, value in function.__globals__.items() if name in function.__code__.co_names and is_value(value)}
    written: dict[str, list[ast.expr]] = {}
    for statement in ast.parse(text).body if read else ():
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            written.setdefault(statement.targets[0].id, []).append(statement.value)
    for name, value in read.items():
        if len(written.get(name, ())) == 1:
            try:
                says = ast.literal_eval(written[name][0])
            except ValueError:
                continue
            if repr(says) != repr(value):
                raise CuvilError(f"{name} is {value!r}, and {says!r} in the source of {function.__qualname__}", expected="the value in the source",
                                 hint=f"make {name} a parameter", code="CUV032")
