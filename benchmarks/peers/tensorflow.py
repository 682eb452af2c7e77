# benchmarks/peers/tensorflow.py — TensorFlow: eager, tf.function, serialized tensors
# SPDX-License-Identifier: MIT
from benchmarks.registry import Loop, Parameters, Peer
from benchmarks.works import ACTIVATIONS, GRAPHS, INPUTS, files

PEER = Peer("TensorFlow", pip=["tensorflow-cpu"])


def value_and_gradient(work: str, relu=None):
    import tensorflow as tf

    def function(x, y):
        with tf.GradientTape() as tape:
            tape.watch((x, y))
            g = GRAPHS[work](x, y, relu or tf.nn.relu)
        return g, *tape.gradient(g, (x, y))

    return function


def way(is_graph: bool):
    def make(work: str, parameters: Parameters) -> Loop:
        import tensorflow as tf

        function = value_and_gradient(work)
        if is_graph:
            function = tf.function(function)
        x, y = (tf.constant(v, tf.float64) for v in INPUTS[work])

        def loop(count: int) -> list[float]:
            for _ in range(count):
                outputs = function(x, y)
            return [float(v) for v in outputs]

        return loop

    return make


PEER.offers("eager", "tiny", "small")(way(False))
PEER.offers("tf.function", "tiny", "small")(way(True))


@PEER.offers("serialize_tensor", "save", "load")
def tensor_files(work: str, parameters: Parameters) -> Loop:
    import tensorflow as tf

    values, path = tf.constant(ACTIVATIONS, tf.float64), parameters["path"]
    return files(
        work,
        lambda: tf.io.write_file(path, tf.io.serialize_tensor(values)),
        lambda: tf.io.parse_tensor(tf.io.read_file(path), tf.float64),
    )
