# python/burtorch/nn/__init__.py — layers and models
# SPDX-License-Identifier: MIT
"""Layers and models on views."""

from __future__ import annotations

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
from .module import Module
from .models import GPT, CharMLP, Parameter

# What bt.load can make.
MODELS = (CharMLP, GPT)
LAYERS = (Linear, Neuron, MLP, Embedding, LayerNorm, SelfAttention, TransformerBlock)

__all__ = [
    "GPT",
    "LAYERS",
    "MLP",
    "MODELS",
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
