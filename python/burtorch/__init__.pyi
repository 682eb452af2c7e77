# python/burtorch/__init__.pyi — the public names, for type checkers
# SPDX-License-Identifier: MIT
from . import nn as nn
from . import optim as optim
from . import viz as viz
from ._core import *  # noqa: F403
from ._fit import fit as fit
from ._paths import __version__ as __version__
from ._paths import get_cmake_dir as get_cmake_dir
from ._paths import get_include as get_include
from .compiled import Compiled as Compiled
from .compiled import Minimum as Minimum
from .compiled import VerifyError as VerifyError
from .compiled import compile as compile
from .compiled import load_compiled as load_compiled
from .derivatives import hessian as hessian
from .derivatives import hvp as hvp
from .derivatives import jacobian as jacobian
from .derivatives import jvp as jvp
from .io import Checkpoint as Checkpoint
from .io import load as load
from .io import load_checkpoint as load_checkpoint
from .io import save as save
from .transforms import GradientError as GradientError
from .transforms import check_grad as check_grad
from .transforms import grad as grad
from .transforms import value_and_grad as value_and_grad
