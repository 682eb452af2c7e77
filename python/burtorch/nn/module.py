# python/burtorch/nn/module.py — Module: parameters found among the attributes, a loss recorded once and replayed
# SPDX-License-Identifier: MIT
"""Module, what all layers and models of one's own derive from.

>>> import numpy as np
>>> import burtorch as bt
>>> class Net(bt.nn.Module):
...     def __init__(self):
...         self.hidden, self.out = bt.nn.Linear(2, 8), bt.nn.Linear(8, 1)
...     def forward(self, x):
...         return self.out(bt.tanh(self.hidden(x)))
...     def loss(self, x, y):
...         return ((self(x) - y) ** 2).mean()
>>> net = Net()
>>> x, y = np.ones((4, 2)), np.zeros((4, 1))
>>> before = net.loss_and_grad(x, y)
>>> net.values -= 0.1 * net.grads
>>> net.loss(x, y) < before
True

The first call with arguments of new shapes records what loss() does; later calls replay it, in parts of the batch
where samples do not mix. Whatever else loss() uses is a constant of the recording: numbers, arrays and Values from
outside. Attributes of the module, and lists and dicts among them, are watched: a change forgets the recordings.
What is changed inside of an array or of another object is not seen; verify() finds it.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Callable, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core as bt
from .._indices import Indices
from ..transforms import _transforming
from ._state import fitting

_changes = 0  # of attributes of any module
_recording = False
_VERIFY_EVERY = 100


def is_recording() -> bool:
    """Whether a module's function is being called to be recorded: nothing should be counted then."""
    return _recording


def _found(name: str, value: Any) -> Iterator[tuple[str, bt.View | bt.Value | Module]]:
    """Yield what an attribute holds: parameters and modules, also inside of lists and dicts."""
    if isinstance(value, (bt.View, bt.Value, Module)):
        yield name, value
    elif isinstance(value, (list, tuple)):
        for i, each in enumerate(value):
            yield from _found(f"{name}.{i}", each)
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _found(f"{name}.{key}", each)


def _containers(value: Any) -> Iterator[Any]:
    """Yield the lists and dicts among attributes: what they hold may change unseen."""
    if isinstance(value, (list, dict)):
        yield value
    if isinstance(value, (list, tuple, dict)):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _containers(each)


def _content(container: Any) -> tuple[int, ...]:
    things = container.values() if isinstance(container, dict) else container
    return tuple(map(id, things))


def _replayed(loss: Callable[..., Any]) -> Callable[..., Any]:
    """Let a loss that is called with arrays run its recording; the program itself records."""

    @functools.wraps(loss)
    def wrapper(self: Module, *data: Any, micro_batch: int | Literal["auto"] = "auto") -> Any:
        if not data or any(isinstance(x, (bt.View, bt.Value, Indices)) for x in data):
            return loss(self, *data)
        return self._replay(data, _micro_batch(micro_batch))

    wrapper.__wrapped_loss__ = loss  # type: ignore[attr-defined]
    return wrapper


def _micro_batch(given: Any) -> int:
    """Return a number of samples; 0 stands for "auto"."""
    if given == "auto":
        return 0
    if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
        if given < 1:
            raise ValueError(f"micro_batch must be at least 1: {given}")
        return int(given)
    raise TypeError(f"micro_batch is a number of samples or 'auto', not {given!r}")


class _Recordings:
    """The plans of a module: one for each kind of arguments, and what they depend on."""

    def __init__(self, module: Module) -> None:
        self.plans: dict[Any, Any] = {}
        self.seen = _changes
        self.versions = module._versions()
        everything = (
            x for m in module.modules() for name, x in vars(m).items() if not name.startswith("_")
        )
        containers = (c for x in everything for c in _containers(x))
        self.containers = [(c, _content(c)) for c in containers]
        self.calls = 0
        #: The way of most calls: a plan for arguments like the last ones.
        self.plain: Callable[..., float | None] = lambda *_: None
        self.training = module.training
        self.like: list[tuple[Any, Any]] = []
        #: What counts batches, and what draws.
        self.counting = [m for m in module.modules() if hasattr(m, "count_batch")]
        random = (getattr(m, "random", None) for m in module.modules())
        self.random: Any = next((r for r in random if isinstance(r, bt.Random)), None)

    def fit(self, module: Module, data: tuple[Any, ...]) -> bool:
        """Whether `plain` is for these arguments, and nothing has changed."""
        if (
            self.seen != _changes
            or self.training is not module.training
            or len(data) != len(self.like)
            or _verifies
        ):
            return False
        for x, (shape, dtype) in zip(data, self.like):
            if type(x) is not np.ndarray or x.dtype is not dtype or x.shape[1:] != shape:
                return False
        return all(_content(c) == content for c, content in self.containers)

    def are_of(self, module: Module) -> bool:
        if self.seen != _changes:
            if self.versions != module._versions():
                return False
            self.seen = _changes
        return all(_content(c) == content for c, content in self.containers)


class Module:
    """Parameters, which are found among the attributes, and a function of them.

    Attributes that are Views, Values or modules, also in lists, tuples and dicts, are the parts of the module, in
    the order in which they were set. forward(x) is what calling the module does. With loss(x, y), the mean over
    the rows of a batch, there are loss_and_grad, per_sample_grads and bt.fit.
    """

    training = True  #: False after eval()

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if "loss" in vars(cls):
            cls.loss = _replayed(vars(cls)["loss"])  # type: ignore[method-assign]

    def __setattr__(self, name: str, value: Any) -> None:
        global _changes
        _changes += 1
        state = vars(self)
        state["_version"] = state.get("_version", 0) + 1
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        global _changes
        object.__delattr__(self, name)
        _changes += 1
        vars(self)["_version"] = vars(self).get("_version", 0) + 1

    def __repr__(self) -> str:
        shapes = [f"{name} {np.shape(view.data)}" for name, view in self.named_parameters()]
        more = ", …" if len(shapes) > 4 else ""
        return f"{type(self).__name__}({', '.join(shapes[:4])}{more})"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        from ..viz import model_mimebundle

        return model_mimebundle(self, include, exclude)

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        return self.forward(*inputs, **options)

    def forward(self, *inputs: Any, **options: Any) -> Any:
        """What calling the module computes; for subclasses to define."""
        raise TypeError(f"{type(self).__name__} does not define forward(self, x)")

    def loss(self, *data: Any) -> Any:
        """The mean loss of a batch, for subclasses to define; called with arrays, it is replayed: a float."""
        raise TypeError(f"{type(self).__name__} does not define loss(self, x, y)")

    # ---- parts ------------------------------------------------------------------------------------

    def parts(self) -> Iterable[tuple[str, bt.View | bt.Value | Module]]:
        """Yield the parameters and the modules this one is made of, with their names."""
        buffers = vars(self).get("_buffers", ())
        for name, value in vars(self).items():
            if not name.startswith("_") and name not in buffers:
                yield from _found(name, value)

    def register_buffer(self, name: str, view: bt.View | bt.Value) -> None:
        """Set an attribute that is stored with the module and not learned."""
        setattr(self, name, view)
        vars(self).setdefault("_buffers", []).append(name)

    def named_buffers(self, prefix: str = "") -> Iterator[tuple[str, Any]]:
        """Yield what is stored with the module and not learned."""
        for name in vars(self).get("_buffers", ()):
            yield prefix + name, getattr(self, name)
        for name, part in self.parts():
            if isinstance(part, Module):
                yield from part.named_buffers(f"{prefix}{name}.")

    def modules(self) -> Iterator[Module]:
        """Yield this module and all it is made of."""
        yield self
        for _, part in self.parts():
            if isinstance(part, Module):
                yield from part.modules()

    @property
    def config(self) -> dict[str, Any] | None:
        """The arguments to make such a layer anew, for files; None if it can't be said."""
        return None

    def named_parameters(self, prefix: str = "") -> Iterator[tuple[str, Any]]:
        """Yield all parameters with their full names; one that has two, with the first."""
        seen: set[int] = set()
        for name, part in self._named(prefix):
            if id(part) not in seen:
                seen.add(id(part))
                yield name, part

    def _named(self, prefix: str) -> Iterator[tuple[str, Any]]:
        for name, part in self.parts():
            if isinstance(part, Module):
                yield from part._named(f"{prefix}{name}.")
            else:
                yield prefix + name, part

    def parameters(self) -> list[Any]:
        """Return all parameters."""
        return [view for _, view in self.named_parameters()]

    def _views(self) -> Iterator[Any]:
        """Yield views of all parameters without their names, which take their time."""
        for _, part in self.parts():
            if isinstance(part, Module):
                yield from part._views()
            else:
                yield part

    @property
    def num_parameters(self) -> int:
        """How many numbers the parameters are."""
        return sum(_size(view) for view in self.parameters())

    def zero_grad(self) -> None:
        """Set the gradients of all parameters to 0."""
        for view in self._views():
            if isinstance(view, bt.Value):
                view.grad = 0.0
            else:
                view.zero_grad()

    def train(self, mode: bool = True) -> Module:
        """Let layers like dropout do what they do in training."""
        for module in self.modules():
            vars(module)["training"] = mode  # recordings know it: nothing is forgotten
        return self

    def eval(self) -> Module:
        """Let layers like dropout do what they do once training is over."""
        return self.train(False)

    # ---- state ------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Return copies of all parameters and buffers by name."""
        return {
            name: np.array(view.data) for name, view in (*self._named(""), *self.named_buffers())
        }

    def load_state_dict(self, state: Mapping[str, ArrayLike], strict: bool = True) -> None:
        """Set all parameters. If a name or a shape does not fit, nothing is changed.

        Without strict, names that are missing or not known are passed over.
        """
        mine = dict((*self._named(""), *self.named_buffers()))
        shapes = {name: np.shape(view.data) for name, view in mine.items()}
        for name, x in fitting(self, shapes, state, strict).items():
            mine[name].data = x if np.ndim(x) else float(x)

    def _flat(self, part: str) -> tuple[NDArray[Any], bool]:
        """All parameters' numbers or gradients; whether they are the tape's own memory."""
        runs = bt._runs([v for v in self._views() if isinstance(v, bt.View)])
        views = self.parameters()
        if len(runs) == 1 and all(isinstance(v, bt.View) for v in views):
            run, order = runs[0]
            if list(order) == sorted(order):
                first = run.reshape(run.size)[0].index
                return getattr(run.tape, part)[first : first + run.size], True
        numbers = [np.ravel(v.data if part == "values" else v.grad) for v in views]
        flat = np.concatenate(numbers) if numbers else np.empty(0)
        flat.flags.writeable = False  # what is written there would be lost
        return flat, False

    def _set_flat(self, part: str, numbers: ArrayLike) -> None:
        flat, is_memory = self._flat(part)
        given = np.asarray(numbers)
        if given.shape not in {(), flat.shape}:
            raise ValueError(f"{part} of shape {given.shape} for {flat.size} parameters")
        if is_memory:
            if not (given.size and np.shares_memory(given, flat)):
                flat[...] = given
            return
        given = np.broadcast_to(given, flat.shape)
        place = 0
        for view in self.parameters():
            piece = given[place : place + _size(view)]
            place += _size(view)
            new = piece[0] if isinstance(view, bt.Value) else piece.reshape(view.shape)
            setattr(view, "data" if part == "values" else "grad", new)

    @property
    def values(self) -> NDArray[Any]:
        """All parameters, flat. A view of the tape's memory where they are neighbours there, else a copy that
        can't be written to; net.values = … and net.values -= … set them in either case. A view is
        good until the tape grows: ask anew after recording.
        """
        return self._flat("values")[0]

    @values.setter
    def values(self, numbers: ArrayLike) -> None:
        self._set_flat("values", numbers)

    @property
    def grads(self) -> NDArray[Any]:
        """Their gradients, likewise."""
        return self._flat("grads")[0]

    @grads.setter
    def grads(self, numbers: ArrayLike) -> None:
        self._set_flat("grads", numbers)

    # ---- recordings -------------------------------------------------------------------------------

    def _versions(self) -> list[tuple[int, int]]:
        return [(id(m), vars(m).get("_version", 0)) for m in self.modules()]

    def _recordings(self) -> _Recordings:
        state = vars(self)
        recordings: _Recordings | None = state.get("_recorded")
        if recordings is None or not recordings.are_of(self):
            recordings = state["_recorded"] = _Recordings(self)
        return recordings

    def _plan(self, what: str, arrays: list[NDArray[Any]]) -> tuple[Any, Any]:
        plans = self._recordings().plans
        key = (what, self.training, *((a.shape[1:], a.dtype.kind) for a in arrays))
        plan = plans.get(key)
        if plan is None or not plan.is_current:
            parameters = self.parameters()
            if not parameters:
                raise TypeError(f"{type(self).__name__} has no parameters")
            tape = parameters[0].tape
            make = bt._plans.Plan_float32 if tape.dtype == "float32" else bt._plans.Plan_float64
            plan = plans[key] = make(tape, parameters, [a[:1].size for a in arrays])
        return plan, key

    def _record(self, what: str, plan: Any, samples: int, arrays: list[NDArray[Any]]) -> None:
        """Call the function with so many samples and keep what it did."""
        global _recording
        parameters = self.parameters()
        tape = parameters[0].tape
        buffers = [(view, np.array(view.data)) for _, view in self.named_buffers()]
        random = self._recordings().random
        drawn = random.state if random is not None else None
        _recording, outer = True, _recording
        try:
            self._record_with(what, plan, samples, arrays, tape, parameters)
        finally:  # what a call changes, replaying it will
            _recording = outer
            for view, numbers in buffers:
                view.data = numbers if numbers.ndim else float(numbers)
            if random is not None:
                random.state = drawn

    def _record_with(
        self,
        what: str,
        plan: Any,
        samples: int,
        arrays: list[NDArray[Any]],
        tape: Any,
        parameters: list[Any],
    ) -> None:
        with tape, bt._plans.Recorder(tape, parameters) as recorder, _transforming(tape):
            data: list[Any] = []
            places = 0
            for k, array in enumerate(arrays):
                shape = (samples, *array.shape[1:])
                if array.dtype.kind == "f":
                    few = np.resize(array, shape)
                    data.append(recorder.data(k, few))
                else:  # zeros, which are right for every table: a run says what is wrong, and where
                    few = np.zeros(shape, array.dtype)
                    at = np.arange(places, places + few.size).reshape(few.shape)
                    data.append(Indices(few, at, _floats(recorder, k, few, places)))
                places += few.size
            run = getattr(type(self), what)
            result = getattr(run, "__wrapped_loss__", run)(self, *data)
            plan.add(recorder, samples, _root(what, result, self))

    def _ready(self, what: str, data: tuple[Any, ...], micro: int, threads: int) -> tuple[Any, Any]:
        arrays = [_array(k, x) for k, x in enumerate(data)]
        samples = len(arrays[0])
        for k, array in enumerate(arrays):
            if len(array) != samples or samples == 0:
                shapes = ", ".join(str(a.shape) for a in arrays)
                raise ValueError(
                    f"argument {k} has {len(array)} rows, the first {samples}; a batch has at least one "
                    f"and as many in all: {shapes}"
                )
        plan, _ = self._plan(what, arrays)
        while missing := plan.missing(samples, micro, min(threads, samples)):
            self._record(what, plan, missing, arrays)
        return plan, arrays

    def _replay(self, data: tuple[Any, ...], micro: int) -> float:
        plan, arrays = self._ready("loss", data, micro, 1)
        return float(plan.loss(*arrays, micro_batch=micro, key=self._key(plan)))

    def _key(self, plan: Any) -> int:
        """Draw a key for what layers like dropout draw, from the generator of the first of them."""
        return int(self._recordings().random.bits()) if plan.draws else 0

    def loss_and_grad(
        self,
        *data: ArrayLike,
        micro_batch: int | Literal["auto"] = "auto",
        threads: int = 1,
        accumulate: bool = False,
    ) -> float:
        """The loss of a batch; its gradient is in .grads afterwards, added there if accumulate is true.

        Where the recording shows that samples do not mix and the loss is their mean or sum, micro_batch samples are
        computed at a time: by default as many as fit into the memory of the parameters and their gradients,
        or into two megabytes where that is more, 256 at most. Otherwise the batch runs as a whole, and
        asking for a micro_batch is an error that names the operation.
        """
        recorded: _Recordings | None = vars(self).get("_recorded")
        is_usual = micro_batch == "auto" and threads == 1 and not accumulate
        if is_usual and recorded is not None and recorded.fit(self, data):
            value = recorded.plain(*data)
            if value is not None:
                return value
        micro = _micro_batch(micro_batch)
        if threads < 1:
            raise ValueError(f"threads must be at least 1: {threads}")
        plan, arrays = self._ready("loss", data, micro, threads)
        key = self._key(plan)
        loss = plan.loss_and_grad(
            *arrays, micro_batch=micro, threads=threads, accumulate=accumulate, key=key
        )
        recordings = self._recordings()
        if not recordings.counting:
            recordings.training = self.training
            recordings.like = [
                (a.shape[1:], getattr(x, "dtype", None)) for a, x in zip(arrays, data)
            ]
            recordings.plain = plan.plain_loss_and_grad
        for layer in recordings.counting:
            if layer.training:
                layer.count_batch()
        if _verifies and not accumulate and not plan.draws:
            recordings.calls += 1
            if recordings.calls % _VERIFY_EVERY == 0:
                self.verify(*data)
        return float(loss)

    def micro_batch_for(self, samples: int, *data: ArrayLike) -> int:
        """How many samples of such data micro_batch="auto" takes at a time in a batch of so many."""
        arrays = [_array(k, x) for k, x in enumerate(data)]
        plan, _ = self._plan("loss", arrays)
        while plan.samples_at_a_time(samples, 0) == 0:
            self._record("loss", plan, 2, arrays)
        return int(plan.samples_at_a_time(samples, 0))

    def per_sample_grads(self, *data: ArrayLike) -> NDArray[Any]:
        """The gradient of each sample's own loss: an array (b, num_parameters); .grads stays."""
        plan, arrays = self._ready("loss", data, 1, 1)
        grads: NDArray[Any] = plan.per_sample_grads(*arrays, key=self._key(plan))
        return grads

    def predict(self, *data: ArrayLike) -> NDArray[Any]:
        """What forward gives for a batch, as an array: recorded once and replayed, without gradients."""
        plan, arrays = self._ready("forward", data, 0, 1)
        results: NDArray[Any] = plan.results(*arrays, micro_batch=0, key=self._key(plan))
        return results

    def verify(self, *data: ArrayLike) -> None:
        """Run the loss as it is written and compare with the recording; raise bt.VerifyError where they differ."""
        from ..compiled import VerifyError

        parameters = self.parameters()
        tape = parameters[0].tape
        before = [np.array(p.grad) for p in parameters]
        loss = self.loss_and_grad(*data)
        names = [name for name, _ in self.named_parameters()]
        replayed = [np.array(p.grad) for p in parameters]
        try:
            with tape, tape.scope(), _transforming(tape):
                self.zero_grad()
                run = type(self).loss
                arrays = [_array(k, x) for k, x in enumerate(data)]
                views = [
                    bt._data(a, _as_view(parameters[0])) if a.dtype.kind == "f" else a
                    for a in arrays
                ]
                result = _root("loss", getattr(run, "__wrapped_loss__", run)(self, *views), self)
                value = float(np.ravel(result.data)[0])
                result.backward()
                eager = [np.array(p.grad) for p in parameters]
        finally:
            for p, g in zip(parameters, before):
                p.grad = g if g.ndim else float(g)
        tolerance = 1e-3 if tape.dtype == "float32" else 1e-9
        if not np.isclose(loss, value, rtol=tolerance, atol=tolerance, equal_nan=True):
            raise VerifyError(
                f"the recording of {type(self).__name__}.loss gives {loss}, the program {value}: what it "
                "takes from outside has changed since it was recorded"
            )
        for name, a, b in zip(names, replayed, eager):
            if not np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True):
                raise VerifyError(
                    f"the recording of {type(self).__name__}.loss gives another gradient of {name} than the "
                    "program: what it takes from outside has changed since it was recorded"
                )


_verifies = os.environ.get("BURTORCH_VERIFY", "") not in {"", "0"}


def _size(part: Any) -> int:
    return 1 if isinstance(part, bt.Value) else int(part.size)


def _as_view(part: Any) -> bt.View:
    return part if isinstance(part, bt.View) else bt.vector([part])


def _floats(recorder: Any, argument: int, numbers: NDArray[Any], start: int) -> Callable[..., Any]:
    flat = numbers.ravel()

    def view(places: NDArray[np.int64]) -> Any:
        at = places - start
        return recorder.data(argument, flat[at].astype(float), at.ravel())

    return view


def _array(k: int, data: Any) -> NDArray[Any]:
    array = np.asarray(data)
    if array.dtype.kind in "fiu" and array.ndim:
        if array.dtype.kind == "f":
            wanted = array.dtype if array.dtype.itemsize in {4, 8} else np.dtype(np.float64)
        else:
            wanted = np.dtype(np.int32 if array.dtype == np.int32 else np.int64)
        return np.ascontiguousarray(array, wanted.newbyteorder("="))
    if array.dtype.kind == "b" and array.ndim:
        return np.ascontiguousarray(array, np.float64)
    raise TypeError(
        f"argument {k} is a batch: an array of numbers with a row for each sample, not "
        f"{type(data).__name__} of {array.dtype} with shape {array.shape}"
    )


def _root(what: str, result: Any, module: Module) -> Any:
    if what != "loss" and isinstance(result, (bt.View, bt.Value)):
        return result
    if isinstance(result, bt.Value) or (isinstance(result, bt.View) and result.size == 1):
        return result
    shape = f" of shape {tuple(result.shape)}" if isinstance(result, bt.View) else ""
    raise TypeError(
        f"{type(module).__name__}.{what} must return a Value (one number), not {type(result).__name__}{shape}"
    )
