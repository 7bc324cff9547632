"""A format string and its arguments disagree.

What: a %-format, `str.format` or logging call asks for more, fewer or other arguments than it is given, or for a conversion
that the argument cannot take (`%d` of a string).
Why: the line raises when it runs (logging prints an error instead of the message), often in a rarely taken branch; arguments
that no field uses are lost silently.
Example: `"%s took %d ms" % (name,)`
Instead: `"%s took %d ms" % (name, elapsed)`
Fix: none; only the author knows which side is wrong.

Silent when an argument is a variable that may be a tuple or a dict, after `*` and `**`, and about loggers that fill `{}`.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from cuvil.diagnostics import Diagnostic

from .formats import Field, Use, uses
from .literal import NotLiteral, literal
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

VALID = (
    "def f(a, b): return '%s %d%%' % (a, b)\n",
    "def f(a): return '%s %s' % a\n",
    "def f(a): return '%(x)s' % a\n",
    "def f(a): return '%*d' % (3, a)\n",
    "def f(a, b): return '{} {}'.format(a, b)\n",
    "def f(a): return '{0} {0!r:>10}'.format(a)\n",
    "def f(a): return '{a} {b}'.format(**a)\n",
    "def f(a): return '{:{}}'.format(a, 8)\n",
    "def f(a): return '{{}}'.format()\n",
    "import logging\ndef f(a): logging.info('%s done', a)\n",
    "import logging\ndef f(): logging.info('100% done')\n",
    "import logging\ndef f(a): logging.info('%(x)s', {'x': a})\n",
    "def f(logger, a): logger.info('loaded {}', a)\n",
    "def f(x): return x % 3\n",
)
INVALID = (
    Invalid("def f(a): return »'%s took %d ms' % (a,)«\n", "asks for 2 arguments and gets 1"),
    Invalid("def f(a, b): return »'%s' % (a, b)«\n", "asks for 1 argument and gets 2"),
    Invalid("def f(a): return »'{} {}'.format(a)«\n", "asks for 2 arguments and gets 1"),
    Invalid("def f(a, b): return »'{}'.format(a, b)«\n", "never used"),
    Invalid("def f(a): return »'{name}'.format(nome=a)«\n", "name"),
    Invalid("def f(a): return »'%(x)s %(y)s' % {'x': a}«\n", "y"),
    Invalid("import logging\ndef f(a): »logging.info('%s and %s', a)«\n", "asks for 2 arguments and gets 1"),
    Invalid("def f(): return »'%d' % ('three',)«\n", "%d"),
    Invalid("def f(a): return »'%y' % (a,)«\n", "no conversion %y"),
    Invalid("def f(a): return »'{} {0}'.format(a)«\n", "numbers some fields"),
    Invalid("def f(): return »'{:d}'.format('three')«\n", "'d'"),
)


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for use in uses(facts):
        verdict = _verdict(use)
        if verdict:
            message, fails = verdict
            finding = RULE.finding(message, facts.module.span(use.node))
            yield finding if fails else replace(finding, certainty="likely")


def _verdict(use: Use) -> tuple[str, bool] | None:
    """(what is wrong, whether it raises)"""
    given_anything = use.count is not None or use.names is not None
    if use.problem:
        return f"this format cannot be used: {use.problem}", True
    named = [f.key for f in use.fields if isinstance(f.key, str)]
    asked = max((f.key + 1 for f in use.fields if isinstance(f.key, int)), default=0)
    if use.what in ("%", "logging") and given_anything:
        if named and use.names is None and use.count is not None:
            return f"the format asks for names ({', '.join(named)}) and gets {_arguments(use.count)} without names", True
        if named and asked:
            return "the format mixes named and unnamed fields", True
        if use.count is not None and asked != use.count:
            return f"the format asks for {_arguments(asked)} and gets {use.count}", True
    if use.what == "format" and use.count is not None and use.node.args and asked > use.count and not _is_function(use):
        return f"the format asks for {_arguments(asked)} and gets {use.count}", True
    if use.what == "format" and use.count is not None and not use.node.args and asked:
        return f"the format asks for {_arguments(asked)} and gets 0", True
    if use.names is not None and (missing := [name for name in dict.fromkeys(named) if name not in use.names]):
        return f"the format asks for {', '.join(missing)}, which is not given", True
    for field in use.fields:
        if problem := _type_problem(field):
            return problem, True
    if use.what == "format" and not _is_function(use) and use.count is not None:
        used = {f.key for f in use.fields}
        unused = [i for i in range(use.count) if i not in used] + sorted((use.names or frozenset()) - used)
        if unused:
            return f"argument {', '.join(map(str, unused))} of the format is never used", False
    return None


def _is_function(use: Use) -> bool:
    """format(value, spec) rather than template.format(...): it has a count of None."""
    return use.count is None


def _type_problem(field: Field) -> str:
    """What a literal argument does to its field: it is simply tried, as the interpreter will."""
    if field.argument is None or field.spec == "*":
        return ""
    try:
        value = literal(field.argument)
    except NotLiteral:
        return ""
    try:
        if field.style == "%":
            ("%" + field.spec) % (value,)
        else:
            text = {"r": repr, "s": str, "a": ascii}.get(field.conversion)
            format(text(value) if text else value, field.spec)
    except (TypeError, ValueError, OverflowError) as error:
        shown = f"%{field.spec}" if field.style == "%" else f"'{field.spec}'"
        return f"{shown} cannot take {value!r}: {error}"
    return ""


def _arguments(count: int) -> str:
    return f"{count} argument{'' if count == 1 else 's'}"


RULE = Rule("CUV942", "format-arguments", kind="format-error", severity="error", certainty="proved", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
