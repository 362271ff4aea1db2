"""File names of the converted model; apart from the writer, so that running it does not import ``onnx``."""

GRAPH_FILE = "model.onnx"
WEIGHTS_FILE = "model.weights"
