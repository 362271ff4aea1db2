"""Writes multilingual-e5-small as an ONNX graph of 8-bit matrix products.

Input ``ids`` int64 (batch, length), output ``states`` float32 (batch, length, 384). There is no mask: a batch holds
texts of equal length only. Each normalisation is written twice, once for the residual path and once with the
quantisation scale of the next product folded into its weights; the attention average's scale is folded into the
value projection (its weights sum to one), so that quantising costs one cheap node. GELU's output is scaled per token.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from models.e5_onnx_names import GRAPH_FILE, WEIGHTS_FILE
from models.e5_quantise import ChannelRange, Floats, quantise_weights
from models.e5_reference import position_table
from models.e5_weights import BLOCK, E5Weights

_CONTRIB = "com.microsoft"
_EPSILON = 1e-12
_OPSET = 21
_IR_VERSION = 10
# GELU is never below -0.17: with a zero point of 24 of 255 and a row maximum of at least 2, everything fits.
_GELU_ZERO = 24
_GELU_SMALLEST_MAXIMUM = 2.0


def write_graph(weights: E5Weights, ranges: Mapping[str, ChannelRange], folder: Path) -> None:
    """Write ``model.onnx`` and its ``model.weights`` (which onnxruntime maps into memory) into ``folder``."""
    graph = _Graph(weights, ranges).build()
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET), helper.make_opsetid(_CONTRIB, 1)])
    model.ir_version = _IR_VERSION
    onnx.save(model, str(folder / GRAPH_FILE), save_as_external_data=True, location=WEIGHTS_FILE, size_threshold=1024)
    # onnx creates it readable by the owner only; the cache may be shared.
    (folder / WEIGHTS_FILE).chmod(0o644)


class _Graph:
    def __init__(self, weights: E5Weights, ranges: Mapping[str, ChannelRange]) -> None:
        self._weights = weights
        self._ranges = ranges
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, onnx.TensorProto] = {}

    def build(self) -> onnx.GraphProto:
        shape = self._weights.shape
        self._constant("unit", np.array(1, np.float32))
        self._constant("middle", np.array(128, np.uint8))
        self._constant("gelu_zero", np.array(_GELU_ZERO, np.uint8))
        self._constant("weight_zero", np.array(0, np.int8))
        self._constant("last_axis", np.array([-1], np.int64))
        state, quantised = self._normalised(self._embeddings(), "emb.ln", "l0.in")
        for layer in range(shape.layers):
            attended = self._attention(quantised, layer)
            residual = self._node("Add", [attended, state], f"l{layer}.residual")
            state, quantised = self._normalised(residual, f"l{layer}.aln", f"l{layer}.mid")
            residual = self._node("Add", [self._feed_forward(quantised, layer), state], f"l{layer}.residual2")
            if layer + 1 < shape.layers:
                state, quantised = self._normalised(residual, f"l{layer}.oln", f"l{layer + 1}.in")
            else:
                state = self._layer_norm(residual, f"l{layer}.oln", "states")
        return helper.make_graph(
            self._nodes,
            "multilingual-e5-small",
            [helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", "length"])],
            [helper.make_tensor_value_info(state, TensorProto.FLOAT, ["batch", "length", shape.hidden])],
            list(self._constants.values()),
        )

    def _constant(self, name: str, values: NDArray[Any]) -> str:
        self._constants[name] = numpy_helper.from_array(np.ascontiguousarray(values).reshape(values.shape), name)
        return name

    def _node(self, kind: str, inputs: list[str], output: str, *, domain: str = "", **attributes: Any) -> str:
        self._nodes.append(helper.make_node(kind, inputs, [output], domain=domain, **attributes))
        return output

    def _embeddings(self) -> str:
        """Word table kept at 4 bits (54 MB, mapped; only looked-up rows are read) plus positions."""
        values, scales = self._weights.blocks("emb.word", columns=self._weights.shape.hidden)
        self._constant("word.values", values[:, 0::2] | (values[:, 1::2] << 4))
        self._constant("word.scales", scales)
        self._node(
            "GatherBlockQuantized",
            ["word.values", "ids", "word.scales"],
            "word.half",
            domain=_CONTRIB,
            bits=4,
            block_size=BLOCK,
            gather_axis=0,
            quantize_axis=1,
        )
        self._node("Cast", ["word.half"], "word", to=TensorProto.FLOAT)
        self._constant("places", position_table(self._weights))
        self._constant("zero", np.array([0], np.int64))
        self._node("Shape", ["ids"], "length", start=1, end=2)
        self._node("Slice", ["places", "zero", "length", "zero"], "place")
        return self._node("Add", ["word", "place"], "embedded")

    def _layer_norm(self, source: str, key: str, output: str, *, fold: ChannelRange | None = None) -> str:
        gain, bias = self._weights.vector(f"{key}.w"), self._weights.vector(f"{key}.b")
        if fold is not None:
            gain, bias = gain / fold.step, (bias - fold.centre) / fold.step
        inputs = [source, self._constant(f"{output}.gain", gain), self._constant(f"{output}.bias", bias)]
        return self._node("LayerNormalization", inputs, output, axis=-1, epsilon=_EPSILON)

    def _normalised(self, source: str, key: str, output: str) -> tuple[str, str]:
        state = self._layer_norm(source, key, output)
        folded = self._layer_norm(source, key, f"{output}.scaled", fold=self._ranges[output])
        return state, self._node("QuantizeLinear", [folded, "unit", "middle"], f"{output}.quantised")

    def _product(self, source: str, matrix: Floats, bias: Floats | None, output: str, *, zero: str = "middle") -> str:
        values, scales = quantise_weights(matrix)
        inputs = [
            source,
            self._constant(f"{output}.weight", values.T),
            "unit",
            self._constant(f"{output}.scale", scales),
            zero,
            "weight_zero",
        ]
        if bias is not None:
            inputs.append(self._constant(f"{output}.bias", bias.astype(np.float32)))
        return self._node("MatMulIntegerToFloat", inputs, output, domain=_CONTRIB)

    def _matrix(self, key: str, *, columns: int) -> tuple[Floats, Floats]:
        return self._weights.matrix(f"{key}.w", columns=columns), self._weights.vector(f"{key}.b")

    def _attention(self, source: str, layer: int) -> str:
        hidden = self._weights.shape.hidden
        incoming, outgoing = self._ranges[f"l{layer}.in"], self._ranges[f"l{layer}.att"]
        parts = [self._matrix(f"l{layer}.{name}", columns=hidden) for name in ("q", "k", "v")]
        value, value_bias = parts[2]
        parts[2] = (value / outgoing.step[:, None], (value_bias - outgoing.centre) / outgoing.step)
        matrix = np.concatenate([part[0] for part in parts])
        bias = np.concatenate([part[1] for part in parts]) + matrix @ incoming.centre
        self._product(source, matrix * incoming.step, bias, f"l{layer}.qkv")
        sizes = self._constant("thirds", np.array([hidden] * 3, np.int64))
        names = [f"l{layer}.{name}" for name in ("query", "key", "value")]
        self._nodes.append(helper.make_node("Split", [f"l{layer}.qkv", sizes], names, axis=-1))
        attended = self._node(
            "MultiHeadAttention",
            names,
            f"l{layer}.attended",
            domain=_CONTRIB,
            num_heads=self._weights.shape.heads,
        )
        quantised = self._node("QuantizeLinear", [attended, "unit", "middle"], f"{attended}.quantised")
        matrix, bias = self._matrix(f"l{layer}.ao", columns=hidden)
        return self._product(quantised, matrix * outgoing.step, bias + matrix @ outgoing.centre, f"l{layer}.ao")

    def _feed_forward(self, source: str, layer: int) -> str:
        shape, name = self._weights.shape, f"l{layer}"
        incoming = self._ranges[f"{name}.mid"]
        matrix, bias = self._matrix(f"{name}.fi", columns=shape.hidden)
        self._product(source, matrix * incoming.step, None, f"{name}.fi")
        shift = self._as_constant(f"{name}.fi.shift", bias + matrix @ incoming.centre)
        self._node("BiasGelu", [f"{name}.fi", shift], f"{name}.gelu", domain=_CONTRIB)
        self._node("ReduceMax", [f"{name}.gelu", "last_axis"], f"{name}.maximum", keepdims=1)
        smallest = self._constant("gelu_smallest", np.array(_GELU_SMALLEST_MAXIMUM, np.float32))
        self._node("Max", [f"{name}.maximum", smallest], f"{name}.reach")
        steps = self._constant("gelu_steps", np.array(1 / (255 - _GELU_ZERO), np.float32))
        self._node("Mul", [f"{name}.reach", steps], f"{name}.step")
        self._node("Div", [f"{name}.gelu", f"{name}.step"], f"{name}.gelu.scaled")
        self._node("QuantizeLinear", [f"{name}.gelu.scaled", "unit", "gelu_zero"], f"{name}.gelu.quantised")
        matrix, bias_out = self._matrix(f"{name}.fo", columns=shape.intermediate)
        self._product(f"{name}.gelu.quantised", matrix, None, f"{name}.fo", zero="gelu_zero")
        self._node("Mul", [f"{name}.fo", f"{name}.step"], f"{name}.fo.real")
        return self._node("Add", [f"{name}.fo.real", self._as_constant(f"{name}.fo.shift", bias_out)], f"{name}.fo.out")

    def _as_constant(self, name: str, values: NDArray[Any]) -> str:
        return self._constant(name, np.asarray(values, np.float32))
