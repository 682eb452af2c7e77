# python/burtorch/nn/models.py — the paper's models of text, computed in C++ from end to end
# SPDX-License-Identifier: MIT
"""CharMLP and GPT: a loss and its gradient over a batch in one call.

>>> import numpy as np
>>> import burtorch as bt
>>> model = bt.nn.CharMLP(hidden=4)
>>> x, y = np.zeros((2, 16), int), np.array([1, 2])
>>> loss = model.loss_and_grad(x, y)
>>> model.values -= 0.1 * model.grads
>>> model.loss(x, y) < loss
True
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core import _models
from ..io import load_checkpoint, write_tensors
from ._state import fitting


def _demand_seed(seed: int) -> None:
    if seed < 0:
        raise ValueError(f"seed can't be negative: {seed}")
    if seed >= 2**64:
        raise ValueError(f"seed must be less than 2**64: {seed}")


class Parameter(NamedTuple):
    """A parameter of a model: both arrays are views of the model's own memory."""

    name: str
    data: NDArray[Any]
    grad: NDArray[Any]


class _Model:
    """What CharMLP and GPT have in common."""

    def __init__(self, dtype: str, drawn: bool = True, **config: int) -> None:
        kind = type(self).__name__
        is_name = not isinstance(dtype, str) or dtype.isalnum()  # NumPy parses some other texts
        try:
            chosen = getattr(_models, f"{kind}_{np.dtype(dtype if is_name else object).name}")
        except (AttributeError, TypeError):
            known = ", ".join(
                sorted(n.split("_")[1] for n in vars(_models) if n.startswith(f"{kind}_"))
            )
            raise ValueError(f"dtype {dtype!r}: a {kind} can be of {known}") from None
        _demand_seed(config["seed"])
        self.config = dict(config)
        self._model = chosen(**config if drawn else {**config, "seed": None})
        self._values: NDArray[Any] = self._model.values
        self._grads: NDArray[Any] = self._model.grads
        self._layout: list[tuple[str, tuple[int, ...], int]] = self._model.layout

    @classmethod
    def _blank(cls, dtype: str, config: Mapping[str, int]) -> _Model:
        """A model whose parameters are all 0, not drawn: they will be loaded."""
        made = cls.__new__(cls)
        _Model.__init__(made, dtype, drawn=False, **{"seed": 0, **config})
        return made

    def __repr__(self) -> str:
        config = ", ".join(f"{name}={value}" for name, value in self.config.items())
        return f"{type(self).__name__}({config}, dtype='{self.dtype}')"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        from ..viz import model_mimebundle

        return model_mimebundle(self, include, exclude)

    @property
    def dtype(self) -> str:
        """float32 or float64."""
        return self._values.dtype.name

    @property
    def num_parameters(self) -> int:
        """How many numbers the model learns."""
        return self._values.size

    @property
    def nbytes(self) -> int:
        """Bytes reserved for parameters, gradients and a micro-batch; most are never touched."""
        return int(self._model.nbytes)

    # The setters let `model.values -= step` work; they copy, so that the views stay what they are.
    @property
    def values(self) -> NDArray[Any]:
        """All parameters, flat: a view, not a copy."""
        return self._values

    @values.setter
    def values(self, values: ArrayLike) -> None:
        if values is not self._values:
            self._values[...] = values

    @property
    def grads(self) -> NDArray[Any]:
        """Their gradients, flat: a view, not a copy."""
        return self._grads

    @grads.setter
    def grads(self, grads: ArrayLike) -> None:
        if grads is not self._grads:
            self._grads[...] = grads

    def loss_and_grad(
        self,
        x: ArrayLike,
        y: ArrayLike,
        micro_batch: int | Literal["auto"] = "auto",
        threads: int = 1,
        accumulate: bool = False,
    ) -> float:
        """The mean loss; its gradient is in .grads afterwards, added there if accumulate is true.

        micro_batch samples are computed at a time, 256 at most. By default they are as many as fit
        into the memory of the parameters and their gradients, or into two megabytes where that is
        more; micro_batch_for(b) says how many, and with 1 the least memory is used. The result
        depends on micro_batch and threads only through rounding, and never on timing.
        """
        return self._model.loss_and_grad(x, y, micro_batch, threads, accumulate)  # type: ignore[no-any-return]

    def loss(
        self, x: ArrayLike, y: ArrayLike, micro_batch: int | Literal["auto"] = "auto"
    ) -> float:
        """The mean loss; .grads stays as it is."""
        return float(self._model.loss(x, y, micro_batch))

    def micro_batch_for(self, samples: int) -> int:
        """How many samples at a time micro_batch="auto" takes in a batch of so many."""
        return int(self._model.micro_batch_for(samples))

    def per_sample_grads(self, x: ArrayLike, y: ArrayLike) -> NDArray[Any]:
        """The gradient of each sample's own loss: an array (b, num_parameters); .grads stays."""
        grads: NDArray[Any] = self._model.per_sample_grads(x, y)
        return grads

    def logits(self, x: ArrayLike) -> NDArray[Any]:
        """What softmax turns into the probabilities of the next index."""
        logits: NDArray[Any] = self._model.logits(x)
        return logits

    def generate(
        self, n: int, seed: int = 0, start: Sequence[int] = (), temperature: float = 1.0
    ) -> NDArray[np.int64]:
        """Draw n indices, one after the other, that continue start."""
        _demand_seed(seed)
        ids: NDArray[np.int64] = self._model.generate(n, seed, list(start), temperature)
        return ids

    def parameters(self) -> list[Parameter]:
        """The parameters with their names and shapes, as views."""
        values, grads = self._split(self._values), self._split(self._grads)
        return [Parameter(name, values[name], grads[name]) for name in values]

    def zero_grad(self) -> None:
        """Set all gradients to 0. Needed only before calls that accumulate."""
        self._grads.fill(0)

    def _split(self, flat: NDArray[Any]) -> dict[str, NDArray[Any]]:
        return {
            name: flat[first : first + int(np.prod(shape))].reshape(shape)
            for name, shape, first in self._layout
        }

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Copies of the parameters by name, in the shapes that PyTorch has."""
        return self._split(self._values.copy())

    def load_state_dict(self, state: Mapping[str, ArrayLike], strict: bool = True) -> None:
        """Take over parameters by name. If anything is wrong, nothing is changed.

        Without strict, names that are missing or not known are passed over. Masks that the well-known
        scripts store beside their weights (`….tril`) always are.
        """
        own = self._split(self._values)
        shapes = {name: x.shape for name, x in own.items()}
        for name, x in fitting(self, shapes, state, strict).items():
            own[name][...] = x

    def load_safetensors(self, path: str | os.PathLike[str], strict: bool = True) -> None:
        """Take over the parameters in a safetensors file, such as PyTorch programs write."""
        self.load_state_dict(load_checkpoint(path).state_dict, strict)

    def save_safetensors(self, path: str | os.PathLike[str]) -> None:
        """Write the parameters to a safetensors file, and nothing else; see bt.save."""
        write_tensors(path, self._split(self._values))


class CharMLP(_Model):
    """The next of vocab characters from the context characters before it.

    x holds indices (b, context), y one index for each sample (b,). Embeddings side by side, one hidden
    layer with tanh, softmax. Index 0 ends a word and fills contexts that begin before it.
    """

    def __init__(
        self,
        hidden: int = 64,
        vocab: int = 27,
        embed: int = 64,
        context: int = 16,
        dtype: str = "float32",
        seed: int = 0,
    ) -> None:
        super().__init__(dtype, hidden=hidden, vocab=vocab, embed=embed, context=context, seed=seed)

    @staticmethod
    def count_parameters(hidden: int, vocab: int, embed: int, context: int, seed: int = 0) -> int:
        """How many parameters a model of these sizes has, without making it."""
        return vocab * embed + (context * embed + 1) * hidden + (hidden + 1) * vocab


class GPT(_Model):
    """A decoder-only transformer over sequences of context indices.

    x and y hold indices (b, context); y is x moved by one. Token and position embeddings, blocks of
    causal self-attention and feed-forward with normalization before each, a linear layer at the end.
    """

    def __init__(
        self,
        vocab: int = 65,
        context: int = 8,
        d_model: int = 24,
        layers: int = 6,
        heads: int = 6,
        dtype: str = "float32",
        seed: int = 0,
    ) -> None:
        super().__init__(
            dtype,
            vocab=vocab,
            context=context,
            d_model=d_model,
            layers=layers,
            heads=heads,
            seed=seed,
        )

    @staticmethod
    def count_parameters(
        vocab: int, context: int, d_model: int, layers: int, heads: int, seed: int = 0
    ) -> int:
        """How many parameters a model of these sizes has, without making it."""
        block = (12 * d_model + 10) * d_model
        return (vocab + context) * d_model + layers * block + (d_model + 1) * vocab
