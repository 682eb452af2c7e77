# benchmarks/peers/tensorflow.py — TensorFlow: eager, tf.function, the same by XLA, serialized tensors
# SPDX-License-Identifier: MIT
from typing import Any

from benchmarks.registry import Loop, Parameters, Peer
from benchmarks.works import ACTIVATIONS, GRAPHS, INPUTS, files

PEER = Peer("TensorFlow", pip=["tensorflow-cpu"])


def value_and_gradient(work: str, relu: Any = None) -> Any:
    import tensorflow as tf

    def function(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch((x, y))
            g = GRAPHS[work](x, y, relu or tf.nn.relu)
        return g, *tape.gradient(g, (x, y))

    return function


def way(transform: Any) -> Any:
    def make(work: str, parameters: Parameters) -> Loop:
        import tensorflow as tf

        x, y = (tf.constant(v, tf.float64) for v in INPUTS[work])
        function = transform(value_and_gradient(work), x, y)

        def loop(count: int) -> list[float]:
            for _ in range(count):
                outputs = function(x, y)
            return [float(v) for v in outputs]

        return loop

    return make


def traced(**options: Any) -> Any:
    def transform(function: Any, *arguments: Any) -> Any:
        import tensorflow as tf

        # Concrete: a call looks for no other trace.
        return tf.function(function, **options).get_concrete_function(*arguments)

    return transform


PEER.offers("eager", "tiny", "small")(way(lambda function, *arguments: function))
PEER.offers("tf.function", "tiny", "small")(way(traced()))
PEER.offers("tf.function, XLA", "tiny", "small")(way(traced(jit_compile=True)))


@PEER.offers("serialize_tensor", "save", "load")
def tensor_files(work: str, parameters: Parameters) -> Loop:
    import tensorflow as tf

    values, path = tf.constant(ACTIVATIONS, tf.float64), parameters["path"]
    return files(
        work,
        lambda: tf.io.write_file(path, tf.io.serialize_tensor(values)),
        lambda: tf.io.parse_tensor(tf.io.read_file(path), tf.float64),
    )
