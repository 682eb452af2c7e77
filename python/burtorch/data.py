# python/burtorch/data.py — text as indices of characters, and samples cut from it
# SPDX-License-Identifier: MIT
"""Texts to train on: any file, or words and prose that come with Python itself.

Index 0 is the end of a line. The other characters follow in the order of Unicode.
"""

from __future__ import annotations

import hashlib
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._core import Error

Ids = NDArray[np.int64]
END = "\n"
_HELD_BACK = 10  # one part in so many is kept for validation


class DataError(Error, ValueError):
    """A text that can't be trained on; the message says why."""


def default_words() -> str:
    """The words that occur in the names of Unicode's characters, one per line."""
    words = set()
    for code in range(0x20000):
        for word in unicodedata.name(chr(code), "").lower().replace("-", " ").split():
            if word.isalpha() and word.isascii() and 3 <= len(word) <= 15:
                words.add(word)
    return "\n".join(sorted(words)) + END


def default_text() -> str:
    """The reference manual of the language, as Python's own help() shows it."""
    from pydoc_data.topics import topics

    return "\n".join(topics[name].strip() + END for name in sorted(topics))


def read_text(path: str | Path) -> str:
    """The text of a file in UTF-8."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise DataError(f"{path} can't be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is no text in UTF-8: byte {error.start} is wrong") from error
    return text if text.endswith(END) else text + END


def vocabulary(text: str) -> str:
    """The characters of a text; the place of each is its index."""
    return END + "".join(sorted(set(text) - {END}))


def encode(text: str, characters: str) -> Ids:
    """The indices of a text's characters."""
    places = {character: i for i, character in enumerate(characters)}
    try:
        return np.array([places[character] for character in text], np.int64)
    except KeyError as error:
        raise DataError(f"the vocabulary has no {error.args[0]!r}") from None


def decode(ids: Any, characters: str) -> str:
    """The text that indices stand for."""
    return "".join(characters[i] for i in ids)


@dataclass(frozen=True)
class Corpus:
    """A text, cut in two: to train on, and to see what was learnt."""

    characters: str
    train: Ids
    valid: Ids
    digest: str  # says whether two of them are the same


def corpus(text: str, shuffle_lines: bool = False) -> Corpus:
    """Cut a text. Lines that do not depend on each other are shuffled, always in the same way."""
    characters = vocabulary(text)
    digest = hashlib.sha256(text.encode()).hexdigest()
    if shuffle_lines:
        lines = text.splitlines()
        order = np.random.Generator(np.random.PCG64(0)).permutation(len(lines))
        lines = [lines[i] for i in order]
        kept = len(lines) - len(lines) // _HELD_BACK
        parts = ["".join(line + END for line in part) for part in (lines[:kept], lines[kept:])]
    else:
        kept = len(text) - len(text) // _HELD_BACK
        parts = [text[:kept], text[kept:]]
    return Corpus(characters, encode(parts[0], characters), encode(parts[1], characters), digest)


class Windows:
    """Samples for a GPT: context indices in a row, and the same moved by one."""

    def __init__(self, ids: Ids, context: int) -> None:
        if len(ids) <= context:
            raise DataError(f"{len(ids)} characters are too few for a context of {context}")
        self._ids, self._context = ids, context

    def __len__(self) -> int:
        return len(self._ids) - self._context

    def __getitem__(self, at: Ids) -> tuple[Ids, Ids]:
        places = at[:, None] + np.arange(self._context)
        return self._ids[places], self._ids[places + 1]


class Words:
    """Samples for a CharMLP: a character and those before it in its line, with 0 where none are."""

    def __init__(self, ids: Ids, context: int) -> None:
        if len(ids) == 0:
            raise DataError("there are too few lines: one in ten is kept for validation")
        self._context = context
        self._ids = np.concatenate([np.zeros(context, np.int64), ids])
        after_end = np.where(ids == 0, np.arange(len(ids)) + 1, 0)
        self._line = np.concatenate([[0], np.maximum.accumulate(after_end)[:-1]])

    def __len__(self) -> int:
        return len(self._line)

    def __getitem__(self, at: Ids) -> tuple[Ids, Ids]:
        before = np.arange(self._context) - self._context
        places = at[:, None] + before
        x = np.where(places >= self._line[at, None], self._ids[places + self._context], 0)
        return x, self._ids[at + self._context]
