"""The tokens of a piece of Python, without what has no meaning: comments, blanks, how deep the indentation is."""
from __future__ import annotations

import io
import textwrap
import tokenize

_SILENT = (tokenize.COMMENT, tokenize.NL, tokenize.ENCODING, tokenize.ENDMARKER)
_BLOCK = {tokenize.INDENT: "<indent>", tokenize.DEDENT: "<dedent>", tokenize.NEWLINE: "<newline>"}


def tokens(text: str) -> tuple[str, ...]:
    """Text that cannot be read into tokens is one token: equal only to itself."""
    try:
        return tuple(_BLOCK.get(token.type, token.string)
                     for token in tokenize.generate_tokens(io.StringIO(textwrap.dedent(text)).readline) if token.type not in _SILENT)
    except (tokenize.TokenError, SyntaxError):
        return (text,)
