"""The messages of all protocols, made from the .proto files."""

import subprocess
from pathlib import Path

from google.protobuf import descriptor_pb2, message_factory

PROTO = Path(__file__).resolve().parents[3] / "proto"


def message_classes():
    """The class of each message, by its full name."""
    files = ["linserve/v1/embedding.proto", "inference/grpc_service.proto"]
    compiled = subprocess.run(["protoc", f"-I{PROTO}", "--include_imports", "--descriptor_set_out=/dev/stdout", *files],
                              check=True, capture_output=True).stdout
    return message_factory.GetMessages(descriptor_pb2.FileDescriptorSet.FromString(compiled).file)
