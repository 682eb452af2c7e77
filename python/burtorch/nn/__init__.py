# python/burtorch/nn/__init__.py — layers and models
# SPDX-License-Identifier: MIT
"""Layers and models on views."""

from __future__ import annotations

from .layers import (
    MLP,
    Embedding,
    LayerNorm,
    Linear,
    Module,
    Neuron,
    SelfAttention,
    TransformerBlock,
    activation,
    seed,
)
from .models import GPT, CharMLP, Parameter

__all__ = [
    "GPT",
    "MLP",
    "CharMLP",
    "Embedding",
    "LayerNorm",
    "Linear",
    "Module",
    "Neuron",
    "Parameter",
    "SelfAttention",
    "TransformerBlock",
    "activation",
    "seed",
]
