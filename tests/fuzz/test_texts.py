"""Texts that nobody means to write, made from those that somebody did: tokens lost, doubled and exchanged, and files that end too soon."""
from __future__ import annotations

import os
import random
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from linted import edited, linted, readable

from cuvil.diagnostics import CuvilError
from cuvil_cli.files import decode
from cuvil_ide.lints import RULES

ROOT = Path(__file__).parents[2]
TOKEN = re.compile(r"\w+|[^\w\s]|\n *| +")
TEXTS = [*(file.read_text(encoding="utf-8") for file in sorted((ROOT / "examples").glob("*.py"))),
         *(text for rule in RULES for text in (*rule.valid, *(bad.code.replace("»", "").replace("«", "") for bad in rule.invalid)))]
FUZZ = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=int(os.environ.get("CUVIL_FUZZ", "100")))


def spoiled(text: str, seed: int) -> str:
    """The text after up to six tokens were lost, doubled, exchanged, or written over others, or a few of them repeated."""
    random_ = random.Random(seed)
    tokens = TOKEN.findall(text)
    for _ in range(random_.choice((1, 1, 2, 6))):
        if not tokens:
            break
        i, j, length = random_.randrange(len(tokens)), random_.randrange(len(tokens)), random_.randrange(1, 20)
        match random_.randrange(5):
            case 0:
                del tokens[i]
            case 1:
                tokens[i], tokens[j] = tokens[j], tokens[i]
            case 2:
                tokens.insert(i, tokens[j])
            case 3:
                tokens[i] = tokens[j]
            case 4:
                tokens[i:i] = tokens[i:i + length]
    return "".join(tokens)


@FUZZ
@given(st.sampled_from(TEXTS), st.integers(0, 2**32))
def test_spoiled_texts_are_answered(text: str, seed: int):
    linted(spoiled(text, seed))


@FUZZ
@given(st.sampled_from(TEXTS), st.floats(0, 1))
def test_texts_that_end_too_soon_are_answered(text: str, share: float):
    linted(text[:round(share * len(text))])


@settings(FUZZ, max_examples=FUZZ.max_examples // 4)
@given(st.sampled_from(TEXTS), st.lists(st.integers(0, 2**32), min_size=1, max_size=3))
def test_a_session_says_of_a_text_what_it_says_without_those_before(text: str, seeds: list[int]):
    texts = [text]
    for seed in seeds:
        texts.append(spoiled(texts[-1], seed))
    edited([*texts, text] if not readable(texts[-1]) else texts)


@pytest.mark.slow
def test_every_prefix_of_real_files_is_answered():
    from packages import corpus
    files = sorted((corpus() / "timm" / "layers").glob("*.py"))
    random.Random(0).shuffle(files)
    for file in files[:int(os.environ.get("CUVIL_FUZZ_FILES", "5"))]:
        text = file.read_text(encoding="utf-8")
        for end in range(0, len(text), max(1, len(text) // 200)):
            linted(text[:end])


HEAD = "import torch\n\n\ndef f(x: torch.Tensor):\n    return (torch.zeros(4, 1) - torch.zeros(4)).mean()\n"


@pytest.mark.parametrize("text", [
    "", "\n", "\f", "\t", "\\", "\\\n", "#", "# only a remark", "\ufeff", "\ufeff" + HEAD, HEAD.replace("\n", "\r\n"), HEAD.replace("\n", "\r"), HEAD.replace("\n", "\n\f"),
    HEAD.replace("    ", "\t"), HEAD + "\t\tx\n  y\n", "\x00", HEAD + "\x00", HEAD.replace("x:", "\U0001d431:"), HEAD + "s = '\U0001f680'\n", HEAD + "s = '\ud800'\n", "\ud800",
    HEAD + "'''", HEAD + "f'{", HEAD + "f'{x!", "#" * 100_000, HEAD + "x" * 100_000, HEAD + "\n" * 100_000, HEAD + "a = '" + "x" * 1_000_000 + "'\n", "\u2028" + HEAD + "\u2028\x85\x1c",
    HEAD + "x = 9" + "9" * 20_000, HEAD + "x = 1" + "_1" * 500 + "\n", "x = 1;" * 500, "\r\n\r\r\n\f\x0b" + HEAD], ids=ascii)
def test_odd_characters_are_answered(text: str):
    linted(text)


@pytest.mark.parametrize("content", [
    b"# -*- coding: latin-1 -*-\nname = '\xe9'\n", b"\xef\xbb\xbfx = 1\n", b"\xff\xfex\x00", b"x = '\xff'\n", b"# coding: nonsense\n", b"\xef\xbb\xbf# coding: latin-1\n",
    b"x = 1\r\ny = 2\r\n", b"\x00", b"# coding: utf-16\nx\n", b"# coding: utf-7\n+AAA\n", b"# coding: rot13\nk\n", b"# coding: hex\n00\n", b"# coding: idna\nx\n"], ids=ascii)
def test_bytes_are_read_or_refused_with_a_place(content: bytes):
    try:
        linted(decode("any.py", content).source.text)
    except CuvilError as error:
        assert error.code == "CUV004" and error.span is not None
