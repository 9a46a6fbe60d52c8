"""Debian's protoc, which the build uses, called as grpcio-tools calls its own."""

import shutil
import subprocess
import sys

plugin = shutil.which("grpc_python_plugin")
sys.exit(subprocess.run(["protoc", f"--plugin=protoc-gen-grpc_python={plugin}", *sys.argv[1:]]).returncode)
