"""A file format turns an actor into bytes, and bytes into a function that runs without Wavedash."""
from __future__ import annotations

import importlib.util
import io
import logging
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wavedash.errors import UserError
from wavedash.export.actor import Actor

Arrays = dict[str, NDArray[Any]]
Model = Callable[[Arrays], Arrays]
"""An exported actor takes and returns named arrays [N, ...]."""
OPSET = 18
"""The opset of ONNX: onnxruntime reads it since 1.14 (2023), TensorRT since 8.6, OpenVINO since 2023.0."""
ROWS = 2
"""The batch size of tracing. It may be any number but one, which torch takes for a constant."""
DESCRIPTION = "wavedash.json"
"""The name under which either format holds the description of the model"""


class Format(NamedTuple):
    """Functions that write and read one format."""

    suffix: str
    packages: tuple[str, ...]
    write: Callable[[Actor, str], bytes]
    """It takes an actor and its description."""
    load: Callable[[bytes], Model]


def check_installed(name: str) -> None:
    missing = [package for package in FORMATS[name].packages if importlib.util.find_spec(package) is None]
    if missing:
        raise UserError(f'export to {name} needs {", ".join(missing)}: pip install "wavedash[export]"; or choose '
                        "--format torchscript, which needs nothing more")


def to_onnx(actor: Actor, description: str) -> bytes:
    inputs, batch = actor.example(ROWS), torch.export.Dim("batch")
    with _quiet():
        program = torch.onnx.export(
            actor, kwargs={"inputs": inputs}, dynamic_shapes={"inputs": {name: {0: batch} for name in inputs}},
            input_names=list(inputs), output_names=list(actor(inputs)), opset_version=OPSET, dynamo=True, verbose=False,
        )
    assert program is not None
    graph = program.model.graph
    graph.metadata_props.clear()
    for node in graph:
        node.metadata_props.clear()  # debug information names source lines and folders of this machine
        for value in node.outputs:
            if not value.is_graph_output():
                value.name = f"_{value.name}"  # inner names such as `view` may equal those of observations
    program.model.metadata_props[DESCRIPTION] = description
    return program.model_proto.SerializeToString()


def load_onnx(data: bytes) -> Model:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return lambda inputs: dict(zip(names, session.run(None, inputs), strict=True))


def to_torchscript(actor: Actor, description: str) -> bytes:
    buffer = io.BytesIO()
    with _quiet(), torch.no_grad():
        # Tracing is enough: the branches that a policy takes depend on its configuration, never on its inputs.
        example = actor.example(ROWS)
        traced = torch.jit.trace(actor, (example,), strict=False, check_trace=False)  # type: ignore[no-untyped-call]
        torch.jit.save(traced, buffer, _extra_files={DESCRIPTION: description})
    return _without_sources(buffer)


def _without_sources(archive: io.BytesIO) -> bytes:
    """Removes debug information, which names source lines and folders of this machine."""
    clean = io.BytesIO()
    with zipfile.ZipFile(archive) as old, zipfile.ZipFile(clean, "w") as new:
        for entry in old.infolist():
            if not entry.filename.endswith(".debug_pkl"):
                new.writestr(entry, old.read(entry))
    return clean.getvalue()


def load_torchscript(data: bytes) -> Model:
    with _quiet():
        module = torch.jit.load(io.BytesIO(data), map_location="cpu")  # type: ignore[no-untyped-call]

    @torch.no_grad()
    def play(inputs: Arrays) -> Arrays:
        outputs: dict[str, Tensor] = module({name: torch.from_numpy(np.ascontiguousarray(x)) for name, x in inputs.items()})
        return {name: x.numpy() for name, x in outputs.items()}

    return play


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppresses warnings of the exporters, which concern their own internals and packages that are not needed here."""
    log = logging.getLogger("torch.onnx")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(level)


FORMATS = {
    "onnx": Format(".onnx", ("onnx", "onnxscript", "onnxruntime"), to_onnx, load_onnx),
    "torchscript": Format(".pt", (), to_torchscript, load_torchscript),
}
