"""Shows that check_layers.py finds each kind of violation, on small trees made for the purpose."""

import tempfile
import unittest
from pathlib import Path

import check_layers


def violations(files):
    """What the check says about a tree given as {path: [what it includes]}."""
    with tempfile.TemporaryDirectory() as root:
        for path, includes in files.items():
            file = Path(root, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("".join(f'#include "{include}"\n' for include in includes))
        return check_layers.check(root)[0]


class CheckLayersTest(unittest.TestCase):

    def assert_one(self, files, *parts):
        found = violations(files)
        self.assertEqual(len(found), 1, found)
        for part in parts:
            self.assertIn(part, found[0])

    def test_a_tree_that_keeps_to_its_borders_passes(self):
        self.assertEqual(violations({
            "server/core/tensor.h": ["cstddef"],
            "server/core/tensor.cc": ["core/tensor.h"],
            "server/engine/engine.h": ["core/tensor.h", "batching/queue.h"],
            "server/batching/queue.h": ["core/tensor.h", "telemetry/log.h"],
            "server/telemetry/log.h": ["spdlog/spdlog.h"],
            "server/attention/math.cc": ["ATen/ATen.h", "core/tensor.h"],
            "server/models/linformer.cc": ["torch/nn.h", "engine/engine.h", "attention/math.h"],
            "server/attention/math.h": ["c10/core/Scalar.h"],
            "server/rpc/service.cc": ["grpcpp/grpcpp.h", "rpc/wire.h", "engine/engine.h"],
            "server/rpc/wire.h": ["linserve/v1/embedding.pb.h"],
            "server/rpc/server.h": ["memory"],
            "server/main.cc": ["rpc/server.h", "engine/engine.h", "config.h"],
            "server/config.h": ["batching/queue.h"],
            "client/client.cc": ["client.h", "core/tensor.h"],
            "client/client.h": ["grpcpp/channel.h"],
            "tests/rpc/service_test.cc": ["client/client.h", "rpc/wire.h", "gtest/gtest.h"],
        }), [])

    def test_an_upward_include_is_found(self):
        self.assert_one({"server/core/tensor.h": ["engine/engine.h"], "server/engine/engine.h": []},
                        "server/core/tensor.h:1", "core may not include engine")

    def test_a_sideways_include_is_found(self):
        self.assert_one({"server/http/http.cc": ["rpc/server.h"], "server/rpc/server.h": []},
                        "http may not include rpc")
        self.assert_one({"server/attention/math.cc": ["engine/engine.h"]},
                        "attention may not include engine")

    def test_an_include_by_another_spelling_is_found(self):
        self.assert_one({"server/core/a.h": ["../engine/engine.h"], "server/engine/engine.h": []},
                        "core may not include engine")
        self.assert_one({"client/a.cc": ["server/engine/engine.h"], "server/engine/engine.h": []},
                        "client may not include engine")

    def test_an_include_of_a_file_that_is_not_there_yet_is_found(self):
        self.assert_one({"server/core/a.h": ["models/none.h"]}, "core may not include models")

    def test_angle_brackets_and_spaces_hide_nothing(self):
        with tempfile.TemporaryDirectory() as root:
            file = Path(root, "server/engine/a.h")
            file.parent.mkdir(parents=True)
            file.write_text("  #  include <torch/torch.h>\n")
            self.assertEqual(len(check_layers.check(root)[0]), 1)

    def test_libtorch_outside_its_layers_is_found(self):
        for header in ("ATen/ATen.h", "c10/util/Exception.h", "torch/torch.h"):
            for path in ("server/engine/a.h", "server/rpc/a.h", "client/a.h", "server/main.cc"):
                self.assert_one({path: [header]}, "may not include LibTorch")

    def test_protobuf_outside_its_layers_is_found(self):
        for header in ("google/protobuf/message.h", "grpcpp/grpcpp.h", "grpc/grpc.h",
                       "linserve/v1/embedding.pb.h", "linserve/v1/embedding.grpc.pb.h"):
            for path in ("server/engine/a.h", "server/models/a.h", "server/http/a.h",
                         "server/config.h"):
                self.assert_one({path: [header]}, "may not include protobuf")

    def test_the_client_may_include_core_only(self):
        self.assert_one({"client/a.cc": ["telemetry/log.h"]}, "client may not include telemetry")
        self.assert_one({"server/engine/a.cc": ["client/client.h"]},
                        "engine may not include client")

    def test_main_may_not_reach_a_library_through_a_layer(self):
        self.assert_one({"server/main.cc": ["rpc/server.h"],
                         "server/rpc/server.h": ["grpcpp/server.h"]},
                        "main may not reach protobuf", "server/rpc/server.h > grpcpp/server.h")
        self.assert_one({"server/config.h": ["models/registry.h"],
                         "server/models/registry.h": ["models/model.h"],
                         "server/models/model.h": ["ATen/ATen.h"]},
                        "main may not reach LibTorch")

    def test_a_unit_that_reaches_both_libraries_is_found(self):
        self.assert_one({"tests/rpc/a_test.cc": ["models/registry.h", "client/client.h"],
                         "server/models/registry.h": ["ATen/ATen.h"],
                         "client/client.h": ["grpcpp/channel.h"]},
                        "tests/rpc/a_test.cc: reaches both LibTorch and protobuf")

    def test_a_layer_that_the_table_does_not_know_is_found(self):
        self.assert_one({"server/extra/a.h": []}, "extra has no line")

    def test_a_cycle_of_includes_ends(self):
        self.assertEqual(violations({"server/core/a.cc": ["core/a.h"],
                                     "server/core/a.h": ["core/b.h"],
                                     "server/core/b.h": ["core/a.h"]}), [])


if __name__ == "__main__":
    unittest.main()
