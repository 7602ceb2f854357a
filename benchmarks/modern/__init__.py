"""Today's models by way of ONNX, beside ONNX Runtime and OpenVINO in turn: __main__.py."""
