# python/burtorch/io.py — checkpoints: a model and what it takes to go on training it, in one file
# SPDX-License-Identifier: MIT
"""save and load: safetensors files, which PyTorch and others read with their own libraries.

>>> import burtorch as bt
>>> model = bt.nn.CharMLP(hidden=4)
>>> optimizer = bt.optim.AdamW(model)
>>> bt.save(model, "model.safetensors", optimizer=optimizer)
>>> again = bt.load("model.safetensors")
>>> checkpoint = bt.load_checkpoint("model.safetensors")
>>> checkpoint.restore(optimizer=bt.optim.AdamW(again))

The parameters are stored under the names of the model's state_dict. What else there is has names with a
slash (`optimizer/0/…`, `arrays/…`), and a text in the header says what the file is: docs/formats.md.
"""

from __future__ import annotations

import json
import math
import mmap
import operator
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._core import Random, _io

FORMAT = "burtorch checkpoint 1"
_MOST_HEADER = 100_000_000  # bytes, as in the format's own library
_TYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "|i1",
    "U64": "<u8",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "|u1",
    "BOOL": "|b1",
}
# Of what JSON makes an object of its own, as many may come beyond one for so many bytes of the file.
_FREE_PIECES, _BYTES_PER_PIECE = 10_000, 8
_NAMES = {np.dtype(name): type_ for type_, name in _TYPES.items()}

# The bit generators whose states are stored, and the largest number that is allowed under each name.
_BIT_GENERATORS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")
_MOST = {
    "pos": 624,
    "buffer_pos": 4,
    "has_uint32": 1,
    "uinteger": 2**32 - 1,
    "state": 2**128 - 1,
    "inc": 2**128 - 1,
}

Arrays = Mapping[str, ArrayLike]
Generator = Union[Random, "np.random.Generator"]  # a text: NumPy loads that module when it is used


# ---- the safetensors format ----------------------------------------------------------------------


def write_tensors(
    path: Any, tensors: Arrays, metadata: Mapping[str, str] | None = None, durable: bool = True
) -> None:
    """Write a safetensors file: to a path, where it replaces another as a whole, or to a file object.

    durable=False does not wait for the disk.
    """
    arrays = {}
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    end = 0
    for name, given in tensors.items():
        if name == "__metadata__":
            raise ValueError("no array can be called __metadata__, which the format has a use for")
        x = np.asarray(given)
        x = np.ascontiguousarray(x, x.dtype.newbyteorder("<")).reshape(x.shape)
        if x.dtype not in _NAMES:
            raise TypeError(f"{name}: arrays of {x.dtype} can't be stored")
        begin, end = end, end + x.nbytes
        arrays[name] = x
        header[name] = {
            "dtype": _NAMES[x.dtype],
            "shape": list(x.shape),
            "data_offsets": [begin, end],
        }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    if not _may_be_parsed(text, 8 + len(text) + end):
        raise ValueError("so many lists, dicts and names can't be stored: make an array of them")
    parts: list[Any] = [
        len(text).to_bytes(8, "little") + text,
        *(x.reshape(-1) for x in arrays.values()),
    ]
    if hasattr(path, "write") and not _is_path(path):
        _io.write_to(path, parts)
    else:
        _io.replace_file(os.fspath(path), parts, durable)


def read_tensors(path: Any) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """Read a safetensors file, from a path, a file object or bytes: arrays and metadata.

    The arrays are views of the file (or of the bytes) and can't be written to. Whoever truncates the file while
    they are in use ends the process (SIGBUS), as with every mapping; replacing it, as save does, is harmless.
    """
    try:
        return _parse(memoryview(_content(path)).cast("B"))
    except _DamagedError as error:
        raise ValueError(f"{_name_of(path)} can't be read: {error}") from None


class _DamagedError(Exception):
    pass


def _is_path(x: Any) -> bool:
    """Asked first: there are paths that can read and write."""
    return isinstance(x, (str, os.PathLike))


def _name_of(source: Any) -> str:
    return str(os.fspath(source) if _is_path(source) else getattr(source, "name", "the checkpoint"))


def _content(source: Any) -> Any:
    if not _is_path(source):
        return source.read() if hasattr(source, "read") else source
    with open(source, "rb") as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode):
            return _read_pipe(file)
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if about.st_size else b""


def _read_pipe(file: BinaryIO) -> bytes:
    """As much as the header says, and a byte more if there is one: what is read may have no end."""
    head = file.read(8)
    text = file.read(min(int.from_bytes(head, "little"), _MOST_HEADER))
    parts = [head, text]
    header, _ = _header(text, len(text))
    left = 1 + max([0, *(about["data_offsets"][1] for about in header.values())])
    while left > 0 and (part := file.read(min(left, 1 << 20))):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _demand(holds: bool, what: str) -> None:
    if not holds:
        raise _DamagedError(what)


def _is_count(x: Any) -> bool:
    return isinstance(x, int) and not isinstance(x, bool) and 0 <= x < 2**63


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    all_ = dict(pairs)
    _demand(len(all_) == len(pairs), "a name occurs twice")
    return all_


def _may_be_parsed(text: bytes, size: int) -> bool:
    """Whether the objects that JSON makes of a text take no more than some multiple of the file's size."""
    pieces = sum(map(text.count, (b"[", b"{", b":")))
    return pieces <= _FREE_PIECES + size // _BYTES_PER_PIECE


def _header(text: bytes, size: int) -> tuple[dict[str, Any], dict[str, str]]:
    """What is said of the arrays of a file of this size, and the metadata."""
    _demand(_may_be_parsed(text, size), "its header consists of too many pieces")
    try:
        header = json.loads(text, object_pairs_hook=_no_duplicates)
    except (ValueError, RecursionError) as error:
        raise _DamagedError(f"its header is no JSON: {error}") from None
    _demand(isinstance(header, dict), "its header is no JSON object")
    metadata = header.pop("__metadata__", None)
    metadata = {} if metadata is None else metadata
    texts = isinstance(metadata, dict) and all(isinstance(x, str) for x in metadata.values())
    _demand(texts, "its metadata are no texts")
    for name, about in header.items():
        _demand_description(name, about)
    return header, metadata


def _parse(content: memoryview) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    _demand(len(content) >= 8, "it is too short")
    length = int.from_bytes(content[:8], "little")
    _demand(length <= min(len(content) - 8, _MOST_HEADER), "its header is cut off")
    header, metadata = _header(bytes(content[8 : 8 + length]), len(content))
    data = content[8 + length :]
    tensors = {name: _tensor(name, about, data) for name, about in header.items()}
    spans = sorted(about["data_offsets"] for about in header.values())
    ends = [0, *(end for _, end in spans)]
    whole = all(begin == end for (begin, _), end in zip(spans, ends)) and ends[-1] == len(data)
    _demand(whole, "its arrays do not fill it")
    return tensors, metadata


def _demand_description(name: str, about: Any) -> None:
    fields = {"dtype", "shape", "data_offsets"}
    _demand(isinstance(about, dict) and about.keys() == fields, f"{name} is not described")
    shape, offsets, type_ = about["shape"], about["data_offsets"], about["dtype"]
    for numbers in (shape, offsets):
        _demand(isinstance(numbers, list) and all(map(_is_count, numbers)), f"{name} has no shape")
    _demand(len(offsets) == 2 and len(shape) <= 32, f"{name} has no shape")
    known = isinstance(type_, str) and (type_ in _TYPES or type_ == "BF16")
    _demand(known, f"{name} is of an unknown type")


def _tensor(name: str, about: dict[str, Any], data: memoryview) -> NDArray[Any]:
    shape, offsets, type_ = about["shape"], about["data_offsets"], about["dtype"]
    _demand(offsets[0] <= offsets[1] <= len(data), f"{name} does not lie in it")
    kind = np.dtype(_TYPES.get(type_, "<u2"))
    here = data[offsets[0] : offsets[1]]
    _demand(math.prod(shape) * kind.itemsize == len(here), f"{name} has not the size of its shape")
    x = np.frombuffer(here, kind).reshape(shape) if len(here) else np.empty(shape, kind)
    if type_ == "BF16":  # the upper half of a float32
        return (x.astype("<u4") << 16).view("<f4")
    return x


# ---- checkpoints ---------------------------------------------------------------------------------


def save(
    model: Any,
    path: Any,
    *,
    optimizer: Any = None,
    random: Generator | None = None,
    step: int | None = None,
    arrays: Arrays | None = None,
    about: Mapping[str, Any] | None = None,
    durable: bool = True,
) -> None:
    """Save a model of bt.nn, to a path or a binary file object.

    With the optimizer and the generator of random numbers, training goes on from the file as if it had never
    stopped. arrays and about (what JSON can say) are kept for the caller. A path holds the old
    content or the new, whole, whatever happens meanwhile; durable=False does not wait for the disk, so that a
    loss of power may bring back the old.
    """
    from . import nn

    known = type(model) in (*nn.MODELS, *nn.LAYERS)  # of others nobody knows how to make them
    about_model = {"kind": type(model).__name__, "arguments": model.config if known else None}
    text: dict[str, Any] = {"format": FORMAT, "model": about_model}
    tensors: dict[str, Any] = {}
    for name, x in _parameters(model).items():
        if "/" in name:
            raise ValueError(f"a parameter's name can't have a slash: {name}")
        tensors[name] = x
    text["model"]["dtype"] = next(iter(tensors.values())).dtype.name if tensors else "float64"
    if optimizer is not None:
        state = optimizer.state_dict()
        for i, piece in enumerate(state["state"]):
            tensors.update({f"optimizer/{i}/{name}": x for name, x in piece.items()})
        text["optimizer"] = {
            "kind": type(optimizer).__name__,
            **{name: state[name] for name in ("lr", "steps", "options", "schedule")},
            "pieces": len(state["state"]),
        }
        step = state["steps"] if step is None else step
    if random is not None:
        text["random"] = _state_of(random)
    text["step"] = None if step is None else operator.index(step)
    if step is not None and not _is_count(text["step"]):
        raise ValueError(f"step counts what was done, and can't be {step}")
    text["about"] = dict(about or {})
    tensors.update({f"arrays/{name}": np.asarray(x) for name, x in (arrays or {}).items()})
    write_tensors(path, tensors, {"burtorch": json.dumps(text)}, durable)


def load(path: Any) -> Any:
    """The model that save stored, from a path, a binary file object or bytes.

    Layers are made on the current tape. Its parameters are its own: the file may change afterwards.
    """
    return load_checkpoint(path).model()


def load_checkpoint(path: Any) -> Checkpoint:
    """Everything that save stored, from a path, a binary file object or bytes.

    Other safetensors files can be read too: restore(model=…) takes their parameters. The arrays are views of
    the file: read_tensors says what must not happen to it while they are in use.
    """
    tensors, metadata = read_tensors(path)
    name = _name_of(path)
    text: Any = {}
    if "burtorch" in metadata:
        try:
            text = json.loads(metadata["burtorch"])
        except (ValueError, RecursionError):
            text = None
        if not isinstance(text, dict) or text.get("format") != FORMAT:
            found = text.get("format") if isinstance(text, dict) else None
            raise ValueError(f"{name} can't be read: it is {found!r}, known is {FORMAT!r}")
    return Checkpoint(
        name,
        {n: x for n, x in tensors.items() if "/" not in n},
        {n[len("arrays/") :]: x for n, x in tensors.items() if n.startswith("arrays/")},
        text.get("step") if _is_count(text.get("step")) else None,
        text["about"] if isinstance(text.get("about"), dict) else {},
        text,
        tensors,
    )


@dataclass(frozen=True)
class Checkpoint:
    """What a file holds."""

    name: str
    state_dict: dict[str, NDArray[Any]]  # of the model
    arrays: dict[str, NDArray[Any]]  # the caller's
    step: int | None
    about: dict[str, Any]  # the caller's
    _text: dict[str, Any]
    _tensors: dict[str, NDArray[Any]]

    def __repr__(self) -> str:
        kind = self._part("model").get("kind", "parameters")
        return f"Checkpoint({self.name}: {kind}, step {self.step})"

    def model(self) -> Any:
        """The model, made anew; a layer on the current tape."""
        from . import nn
        from .nn.layers import drawing_apart

        said: dict[str, Any] = self._part("model")
        kind, config, dtype = said.get("kind"), said.get("arguments"), said.get("dtype", "")
        makers = {each.__name__: each for each in (*nn.MODELS, *nn.LAYERS)}
        if not isinstance(config, dict) or not isinstance(kind, str) or kind not in makers:
            raise ValueError(
                f"{self.name} does not say how its model is made ({kind}): make it, then use "
                "load_checkpoint(…).restore(model=…)"
            )
        maker = makers[kind]
        # Before memory is taken for it: files can say anything.
        stored = sum(x.size for x in self.state_dict.values())
        try:
            wanted = maker.count_parameters(**config)
        except (TypeError, ValueError) as error:
            raise self._bad(f"the arguments of {kind}: {error}") from None
        if wanted != stored:
            raise self._bad(f"{kind} has {wanted} parameters, the file {stored}")
        try:
            with drawing_apart():
                made = maker._blank(dtype, config) if maker in nn.MODELS else maker(**config)
        except (TypeError, ValueError) as error:
            raise self._bad(f"the arguments of {kind}: {error}") from None
        if _parameters(made) and next(iter(_parameters(made).values())).dtype.name != dtype:
            raise ValueError(f"{self.name} holds a layer of {dtype}, the current tape is another")
        made.load_state_dict(self.state_dict)
        return made

    def restore(
        self, *, model: Any = None, optimizer: Any = None, random: Generator | None = None
    ) -> None:
        """Bring these to where they were when they were saved. They must be of the same kind and sizes.

        If one does not fit, those after it are not changed: model, optimizer, random.
        """
        if model is not None:
            model.load_state_dict(self.state_dict)
        if optimizer is not None:
            self._restore_optimizer(optimizer)
        if random is not None:
            self._restore_random(random)

    def _restore_optimizer(self, optimizer: Any) -> None:
        said = self._part("optimizer")
        if not said:
            raise ValueError(f"{self.name} has no optimizer")
        kind, pieces = said.get("kind"), said.get("pieces", 0)
        if kind != type(optimizer).__name__:
            raise ValueError(f"{self.name} has an optimizer {kind}, not {type(optimizer).__name__}")
        counts = _is_count(said.get("steps")) and _is_count(pieces)
        if "lr" not in said or not counts or pieces > len(self._tensors) + 1:
            raise self._bad("its optimizer has no numbers")
        found: list[dict[str, NDArray[Any]]] = [{} for _ in range(pieces)]
        for name, x in self._tensors.items():
            head, _, rest = name.partition("/")
            index, _, field = rest.partition("/")
            if head == "optimizer" and index.isdecimal() and int(index) < pieces:
                found[int(index)][field] = np.array(x)
        try:
            optimizer.load_state_dict({**said, "state": found})
        except ValueError as error:
            raise self._bad(f"its optimizer: {error}") from None

    def _restore_random(self, random: Generator) -> None:
        said = self._part("random")
        if not said:
            raise ValueError(f"{self.name} has no generator of random numbers")
        kind = _state_of(random)["kind"]
        state: Any = said.get("state")
        if said.get("kind") != kind:
            raise ValueError(f"{self.name} has random numbers of {said.get('kind')}, not of {kind}")
        # Generators believe what they are told, and would draw from behind the end of their arrays.
        now = random.state if isinstance(random, Random) else random.bit_generator.state
        if not _could_be(state, now):
            raise self._bad(f"the state of {kind} is none that it could be in")
        try:
            if isinstance(random, Random):
                random.state = state
            else:
                random.bit_generator.state = state
        except ValueError as error:
            raise self._bad(f"the state of {kind}: {error}") from None

    def _part(self, name: str) -> dict[str, Any]:
        """What the text says of something; nothing, if that is no object."""
        said = self._text.get(name)
        return said if isinstance(said, dict) else {}

    def _bad(self, what: str) -> ValueError:
        return ValueError(f"{self.name} can't be read: {what}")


def _parameters(model: Any) -> dict[str, NDArray[Any]]:
    """By name, without a copy where there are arrays."""
    if not hasattr(model, "named_parameters"):  # a model whose parameters are arrays
        return {each.name: each.data for each in model.parameters()}
    state: dict[str, NDArray[Any]] = model.state_dict()
    return state


def _state_of(random: Generator) -> dict[str, Any]:
    if isinstance(random, Random):
        return {"kind": "Random", "state": list(random.state)}
    if not isinstance(random, np.random.Generator):
        raise TypeError(f"a bt.Random or a numpy.random.Generator, not {type(random).__name__}")
    kind = type(random.bit_generator)
    if kind not in (getattr(np.random, name, None) for name in _BIT_GENERATORS):
        raise TypeError(f"states of {', '.join(_BIT_GENERATORS)} are known, not of {kind.__name__}")
    return {"kind": kind.__name__, "state": _plain(random.bit_generator.state)}


def _could_be(given: Any, now: Any, most: int = 2**64 - 1) -> bool:
    """Whether a generator in the state `now` could get into the given one."""
    if isinstance(now, Mapping):
        same = isinstance(given, dict) and given.keys() == now.keys()
        return same and all(_could_be(given[name], now[name], _MOST.get(name, -1)) for name in now)
    if isinstance(now, (np.ndarray, list, tuple)):
        each = np.iinfo(now.dtype).max if isinstance(now, np.ndarray) else most
        same = isinstance(given, list) and len(given) == len(now)
        return same and all(_could_be(x, 0, int(each)) for x in given)
    if isinstance(now, str):
        return bool(given == now)
    return type(given) is int and 0 <= given <= most


def _plain(x: Any) -> Any:
    """The same without NumPy's types."""
    if isinstance(x, Mapping):
        return {name: _plain(each) for name, each in x.items()}
    return x.tolist() if isinstance(x, (np.ndarray, np.generic)) else x
