"""ONNX models as OpenVINO and ONNX Runtime compute them, for the benchmarks that put these beside linserve."""


def models(runtime, file, streams, threads, samples):
    """One function a stream, which takes the model's inputs by name and returns its first output. `runtime` is
    openvino-f32, openvino-bf16, openvino-int8, onnxruntime-f32 or onnxruntime-int8; `samples` are inputs to calibrate
    int8 with."""
    name, precision = runtime.split("-")
    return (_openvino if name == "openvino" else _onnxruntime)(file, precision, streams, threads, samples)


def _openvino(file, precision, streams, threads, samples):
    import openvino

    core = openvino.Core()
    model = core.read_model(file)
    if precision == "int8":  # weights and activations, as NNCF quantizes them
        import nncf

        model = nncf.quantize(model, nncf.Dataset(samples), model_type=nncf.ModelType.TRANSFORMER)
    options = {"NUM_STREAMS": str(streams), "INFERENCE_NUM_THREADS": str(threads)}
    hint = {"f32": openvino.Type.f32, "bf16": openvino.Type.bf16}.get(precision)
    if hint is not None:
        options["INFERENCE_PRECISION_HINT"] = hint
    compiled = core.compile_model(model, "CPU", options)
    requests = [compiled.create_infer_request() for _ in range(streams)]
    return [lambda inputs, request=request: request.infer(inputs)[0] for request in requests]


def _onnxruntime(file, precision, streams, threads, _samples):
    import onnxruntime

    if precision == "int8":
        from onnxruntime.quantization import quantize_dynamic

        quantize_dynamic(file, file + ".int8", per_channel=True)
        file += ".int8"
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads // streams
    sessions = [onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"]) for _ in range(streams)]
    return [lambda inputs, session=session: session.run(None, inputs)[0] for session in sessions]
