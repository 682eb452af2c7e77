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

__all__ = [
    "MLP",
    "Embedding",
    "LayerNorm",
    "Linear",
    "Module",
    "Neuron",
    "SelfAttention",
    "TransformerBlock",
    "activation",
    "seed",
]
