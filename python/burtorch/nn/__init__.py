# python/burtorch/nn/__init__.py — layers and models
# SPDX-License-Identifier: MIT
"""Layers and models on views."""

from __future__ import annotations

from .containers import GELU, Flatten, ReLU, Sequential, Sigmoid, SiLU, Tanh
from .convolution import AvgPool2d, Conv1d, Conv2d, MaxPool2d
from .layers import (
    MLP,
    Embedding,
    LayerNorm,
    Linear,
    Neuron,
    SelfAttention,
    TransformerBlock,
    activation,
    seed,
)
from .models import GPT, CharMLP, Parameter
from .module import Module
from .normalization import BatchNorm1d, BatchNorm2d, Dropout
from .recurrent import GRU, LSTM, GRUCell, LSTMCell

# What bt.load can make.
MODELS = (CharMLP, GPT)
LAYERS = (
    *(Linear, Neuron, MLP, Embedding, LayerNorm, SelfAttention, TransformerBlock),
    *(Conv1d, Conv2d, LSTM, GRU, LSTMCell, GRUCell),
)

__all__ = [
    "GELU",
    "GPT",
    "GRU",
    "LAYERS",
    "LSTM",
    "MLP",
    "MODELS",
    "AvgPool2d",
    "BatchNorm1d",
    "BatchNorm2d",
    "CharMLP",
    "Conv1d",
    "Conv2d",
    "Dropout",
    "Embedding",
    "Flatten",
    "GRUCell",
    "LSTMCell",
    "LayerNorm",
    "Linear",
    "MaxPool2d",
    "Module",
    "Neuron",
    "Parameter",
    "ReLU",
    "SelfAttention",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "Tanh",
    "TransformerBlock",
    "activation",
    "seed",
]
