# python/burtorch/interop/_convert.py — a PyTorch module as a burtorch module, with its weights
# SPDX-License-Identifier: MIT
"""convert: what torch.fx finds in a module, made of burtorch's layers and functions."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

import torch  # type: ignore[import-not-found, unused-ignore]
from torch import fx, nn  # type: ignore[import-not-found, unused-ignore]
from torch.nn import functional as F  # type: ignore[import-not-found, unused-ignore] # noqa: N812

import burtorch as bt
from burtorch.nn import Module


class _Lookup(Module):
    """An embedding as PyTorch has it: one more dimension than the indices."""

    def __init__(self, entries: int, size: int) -> None:
        self.rows = bt.nn.Embedding(entries, size)

    def parts(self) -> Iterable[tuple[str, Any]]:
        return self.rows.parts()

    def forward(self, ids: Any) -> Any:
        return self.rows(ids.reshape(-1)).reshape(*ids.shape, self.rows.weight.shape[1])


def _pool(kind: Callable[..., Module], m: Any) -> Module:
    if m.padding not in (0, (0, 0)) or getattr(m, "dilation", 1) != 1 or m.ceil_mode:
        raise TypeError(f"{m}: pooling has no padding, dilation or ceil_mode here")
    return kind(m.kernel_size, m.stride)


def _convolution(kind: Callable[..., Module], m: Any) -> Module:
    if any(d != 1 for d in m.dilation) or m.padding_mode != "zeros" or isinstance(m.padding, str):
        raise TypeError(f"{m}: convolutions have no dilation and zeros around them here")
    has_bias = m.bias is not None
    return kind(
        m.in_channels, m.out_channels, m.kernel_size, m.stride, m.padding, m.groups, has_bias
    )


def _recurrent(kind: Callable[..., Module], m: Any) -> Module:
    if not m.batch_first or m.bidirectional or m.dropout or getattr(m, "proj_size", 0):
        raise TypeError(f"{m}: batch_first, in one direction, without dropout or projection here")
    return kind(m.input_size, m.hidden_size, m.num_layers, m.bias)


def _layer_norm(m: Any) -> Module:
    if len(m.normalized_shape) != 1 or m.weight is None or m.bias is None:
        raise TypeError(f"{m}: layer norm is over the last dimension, with weight and bias, here")
    return bt.nn.LayerNorm(m.normalized_shape[0], m.eps)


def _batch_norm(kind: Callable[..., Module], m: Any) -> Module:
    if not (m.affine and m.track_running_stats and m.momentum is not None):
        raise TypeError(f"{m}: batch norm has weights, running statistics and a momentum here")
    return kind(m.num_features, m.eps, m.momentum)


def _gelu(m: Any) -> Module:
    if m.approximate != "none":
        raise TypeError(f"{m}: gelu is exact here")
    return bt.nn.GELU()


def _lookup(m: Any) -> Module:
    if m.padding_idx is not None or m.max_norm is not None:
        raise TypeError(f"{m}: embeddings have no padding_idx or max_norm here")
    return _Lookup(m.num_embeddings, m.embedding_dim)


_LAYERS: dict[Any, Callable[[Any], Module]] = {
    nn.Linear: lambda m: bt.nn.Linear(m.in_features, m.out_features, m.bias is not None),
    nn.Conv1d: lambda m: _convolution(bt.nn.Conv1d, m),
    nn.Conv2d: lambda m: _convolution(bt.nn.Conv2d, m),
    nn.MaxPool2d: lambda m: _pool(bt.nn.MaxPool2d, m),
    nn.AvgPool2d: lambda m: _pool(bt.nn.AvgPool2d, m),
    nn.LSTM: lambda m: _recurrent(bt.nn.LSTM, m),
    nn.GRU: lambda m: _recurrent(bt.nn.GRU, m),
    nn.BatchNorm1d: lambda m: _batch_norm(bt.nn.BatchNorm1d, m),
    nn.BatchNorm2d: lambda m: _batch_norm(bt.nn.BatchNorm2d, m),
    nn.LayerNorm: _layer_norm,
    nn.Embedding: _lookup,
    nn.Dropout: lambda m: bt.nn.Dropout(m.p),
    nn.Flatten: lambda m: bt.nn.Flatten(),
    nn.ReLU: lambda m: bt.nn.ReLU(),
    nn.Tanh: lambda m: bt.nn.Tanh(),
    nn.Sigmoid: lambda m: bt.nn.Sigmoid(),
    nn.SiLU: lambda m: bt.nn.SiLU(),
    nn.GELU: _gelu,
    nn.Identity: lambda m: bt.nn.Sequential(),
}


def _flatten(x: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    end = end_dim % len(x.shape)
    return x.reshape(*x.shape[:start_dim], -1, *x.shape[end + 1 :])


def _reduced(name: str) -> Callable[..., Any]:
    def reduce(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
        return getattr(x, name)(axis=dim, keepdims=keepdim)

    return reduce


def _transposed(x: Any, a: int, b: int) -> Any:
    axes = list(range(len(x.shape)))
    axes[a], axes[b] = axes[b], axes[a]
    return x.transpose(*axes)


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    operator.add: operator.add,
    operator.sub: operator.sub,
    operator.mul: operator.mul,
    operator.truediv: operator.truediv,
    operator.neg: operator.neg,
    operator.matmul: operator.matmul,
    operator.getitem: operator.getitem,
    torch.add: operator.add,
    torch.mul: operator.mul,
    torch.matmul: operator.matmul,
    torch.relu: bt.relu,
    F.relu: lambda x, inplace=False: bt.relu(x),
    torch.tanh: bt.tanh,
    torch.sigmoid: bt.sigmoid,
    torch.exp: bt.exp,
    F.silu: lambda x, inplace=False: bt.silu(x),
    F.softmax: lambda x, dim=-1, **_: bt.softmax(x),
    F.log_softmax: lambda x, dim=-1, **_: bt.log_softmax(x),
    torch.flatten: _flatten,
    torch.cat: lambda views, dim=0: bt.concat(views, axis=dim),
    torch.mean: _reduced("mean"),
    torch.sum: _reduced("sum"),
}
_METHODS: dict[str, Callable[..., Any]] = {
    "relu": bt.relu,
    "tanh": bt.tanh,
    "sigmoid": bt.sigmoid,
    "flatten": _flatten,
    "view": lambda x, *shape: x.reshape(*shape),
    "reshape": lambda x, *shape: x.reshape(*shape),
    "mean": _reduced("mean"),
    "sum": _reduced("sum"),
    "transpose": _transposed,
    "permute": lambda x, *axes: x.transpose(*axes),
    "size": lambda x, dim=None: x.shape if dim is None else x.shape[dim],
    "squeeze": lambda x, dim: x.reshape(*(n for i, n in enumerate(x.shape) if i != dim % x.ndim)),
    "unsqueeze": lambda x, dim: x.reshape(
        *x.shape[: dim % (x.ndim + 1)], 1, *x.shape[dim % (x.ndim + 1) :]
    ),
    "contiguous": lambda x: x,
}


class _Converted(Module):
    """What torch.fx found, run step by step."""

    def __init__(self, graph: Any, pieces: dict[str, Any]) -> None:
        self._graph, self._pieces = graph, pieces

    def parts(self) -> Iterable[tuple[str, Any]]:
        return self._pieces.items()

    def forward(self, *inputs: Any) -> Any:
        given = iter(inputs)
        values: dict[Any, Any] = {}
        for node in self._graph.nodes:
            arguments, options = fx.node.map_arg((node.args, node.kwargs), values.__getitem__)
            if node.op == "placeholder":
                values[node] = next(given)
            elif node.op == "get_attr":
                values[node] = self._pieces[node.target]
            elif node.op == "call_module":
                values[node] = self._pieces[node.target](*arguments, **options)
            elif node.op == "call_function":
                values[node] = _FUNCTIONS[node.target](*arguments, **options)
            elif node.op == "call_method":
                values[node] = _METHODS[node.target](*arguments, **options)
            else:
                return arguments[0]
        return None


def convert(module: Any) -> Module:
    """Return a burtorch module that computes what a PyTorch module does, with a copy of its weights.

    The module is traced by torch.fx, so its forward may not depend on numbers. It may be made of Linear, Conv1d, Conv2d,
    pooling, LSTM, GRU, BatchNorm, LayerNorm, Embedding, Dropout, the usual activations, and functions of tensors
    that burtorch has. Parameters have PyTorch's names; they are on a tape of their own, of the module's dtype.
    """
    traced = fx.symbolic_trace(module)
    tensors = [*module.parameters(), *module.buffers()]
    is_wide = any(t.dtype == torch.float64 for t in tensors)
    layers = dict(traced.named_modules())
    pieces: dict[str, Any] = {}
    with bt.Tape("float64" if is_wide else "float32"):
        for node in traced.graph.nodes:
            where = f"{node.format_node()}"
            if node.op == "call_module" and node.target not in pieces:
                make = _LAYERS.get(type(layers[node.target]))
                if make is None:
                    raise TypeError(
                        f"{node.target} is a {type(layers[node.target]).__name__}, which "
                        "burtorch has no layer for"
                    )
                pieces[node.target] = make(layers[node.target])
            elif node.op == "get_attr":
                value = operator.attrgetter(node.target)(module).detach().numpy()
                pieces[node.target] = bt.matrix(value) if value.ndim > 1 else bt.vector(value)
            elif node.op == "call_function" and node.target not in _FUNCTIONS:
                raise TypeError(f"burtorch has no function for this: {where}")
            elif node.op == "call_method" and node.target not in _METHODS:
                raise TypeError(f"burtorch has no method for this: {where}")
        made = _Converted(traced.graph, pieces)
        state = {name: x.numpy() for name, x in module.state_dict().items()}
        made.load_state_dict(state, strict=False)
        if missing := set(dict(made._named(""))) - set(state):
            raise TypeError(f"no weights for {', '.join(sorted(missing))}")
    return made.train(module.training)
