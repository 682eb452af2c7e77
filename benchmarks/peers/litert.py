# benchmarks/peers/litert.py — LiteRT (TensorFlow Lite): the gradient as a converted graph; it has no FP64, so FP32
# SPDX-License-Identifier: MIT
from typing import Any

from benchmarks.environment import HOME
from benchmarks.registry import Loop, Parameters, Peer
from benchmarks.works import INPUTS

PEER = Peer(
    "LiteRT",
    pip=["ai-edge-litert", "tensorflow-cpu"],
    modules=["benchmarks.peers.litert"],  # converts: TensorFlow is no part of what is measured
)


def convert(work: str) -> None:
    import tensorflow as tf

    from benchmarks.peers.tensorflow import value_and_gradient

    def relu(v: Any) -> Any:  # LiteRT does not have the gradient of TensorFlow's own
        return tf.maximum(v, 0.0)

    scalar = tf.TensorSpec((), tf.float32)
    function = tf.function(value_and_gradient(work, relu), input_signature=[scalar, scalar])
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function.get_concrete_function()])
    (HOME / f"{work}.tflite").write_bytes(converter.convert())


@PEER.offers("FP32", "tiny", "small", tolerance=1e-5)
def interpreted(work: str, parameters: Parameters) -> Loop:
    import numpy as np
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(str(HOME / f"{work}.tflite"), num_threads=1)
    interpreter.allocate_tensors()
    for tensor, x in zip(interpreter.get_input_details(), INPUTS[work]):
        interpreter.set_tensor(tensor["index"], np.float32(x))
    outputs = [tensor["index"] for tensor in interpreter.get_output_details()]

    def loop(count: int) -> list[float]:
        for _ in range(count):
            interpreter.invoke()
        return [float(interpreter.get_tensor(i)) for i in outputs]

    return loop


if __name__ == "__main__":
    for work in INPUTS:
        convert(work)
