"""Shows that check_layers.py finds each kind of violation, on small trees made for the purpose."""

import tempfile
import unittest
from pathlib import Path

import check_layers


def violations(files):
    """What the check says about a tree given as {path: [what it includes, or lines of code]}."""
    with tempfile.TemporaryDirectory() as root:
        for path, includes in files.items():
            file = Path(root, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("".join(include + "\n" if include.endswith((";", "}", "{", "namespace")) else f'#include "{include}"\n'
                                    for include in includes))
        return check_layers.check(root)[0]


class CheckLayersTest(unittest.TestCase):

    def assert_one(self, files, *parts):
        found = violations(files)
        self.assertEqual(len(found), 1, found)
        for part in parts:
            self.assertIn(part, found[0])

    def test_a_tree_that_keeps_to_its_borders_passes(self):
        self.assertEqual(violations({
            "server/core/tensor/tensor.h": ["cstddef"],
            "server/core/tensor/tensor.cc": ["core/tensor/tensor.h"],
            "server/engine/engine.h": ["core/tensor/tensor.h", "batching/queue.h"],
            "server/batching/queue.h": ["core/tensor/tensor.h", "telemetry/log.h"],
            "server/telemetry/log.h": ["string_view"],
            "server/attention/linear/math.cc": ["ATen/ATen.h", "core/tensor/tensor.h", "attention/rows/rows.h"],
            "server/models/linformer/linformer.cc": ["torch/nn.h", "engine/engine.h", "attention/rows/rows.h"],
            "server/attention/rows/rows.h": ["c10/core/Scalar.h"],
            "server/rpc/service.cc": ["grpcpp/grpcpp.h", "rpc/messages/wire.h", "engine/engine.h"],
            "server/rpc/messages/wire.h": ["linserve/v1/embedding.pb.h"],
            "server/rpc/server.h": ["memory"],
            "server/program/main.cc": ["rpc/server.h", "engine/engine.h", "config.h"],
            "server/program/serve/config.h": ["engine/engine.h"],
            "client/library/client.cc": ["client.h", "core/tensor/tensor.h"],
            "client/library/client.h": ["grpcpp/channel.h"],
            "tests/rpc/service_test.cc": ["client/library/client.h", "rpc/messages/wire.h", "gtest/gtest.h"],
        }), [])

    def test_a_comment_that_leans_on_the_line_above_is_found(self):
        for comment in ("// Of these;", "// Likewise;", "// The same again;"):
            self.assert_one({"server/core/files/a.h": ["int a;", comment]}, "server/core/files/a.h:2")
        self.assertEqual(violations({"server/core/files/a.h": ["// It ends;", "// Of these;"]}), [])

    def test_a_folder_of_too_many_files_is_found(self):
        files = {f"tests/core/{i}_test.cc": [] for i in range(check_layers.MOST_FILES)}
        self.assertEqual(violations(files), [])
        self.assert_one(files | {"tests/core/README.md": []}, "tests/core: 26 files, expected at most 25")

    def test_an_upward_include_is_found(self):
        self.assert_one({"server/core/tensor/tensor.h": ["engine/engine.h"], "server/engine/engine.h": []},
                        "server/core/tensor/tensor.h:1", "core may not include engine")

    def test_a_sideways_include_is_found(self):
        self.assert_one({"server/http/http.cc": ["rpc/server.h"], "server/rpc/server.h": []},
                        "http may not include rpc")
        self.assert_one({"server/attention/linear/math.cc": ["engine/engine.h"]},
                        "attention may not include engine")

    def test_an_include_by_another_spelling_is_found(self):
        self.assert_one({"server/core/files/a.h": ["../../engine/engine.h"], "server/engine/engine.h": []},
                        "core may not include engine")
        self.assert_one({"client/files/a.cc": ["server/engine/engine.h"], "server/engine/engine.h": []},
                        "client may not include engine")

    def test_an_include_of_a_file_that_is_not_there_yet_is_found(self):
        self.assert_one({"server/core/files/a.h": ["models/none.h"]}, "core may not include models")

    def test_angle_brackets_and_spaces_hide_nothing(self):
        with tempfile.TemporaryDirectory() as root:
            file = Path(root, "server/engine/a.h")
            file.parent.mkdir(parents=True)
            file.write_text("  #  include <torch/torch.h>\n")
            self.assertEqual(len(check_layers.check(root)[0]), 1)

    def test_libtorch_outside_its_layers_is_found(self):
        for header in ("ATen/ATen.h", "c10/util/Exception.h", "torch/torch.h"):
            for path in ("server/engine/a.h", "server/rpc/a.h", "client/files/a.h", "server/program/main.cc"):
                self.assert_one({path: [header]}, "may not include LibTorch")

    def test_protobuf_outside_its_layers_is_found(self):
        for header in ("google/protobuf/message.h", "grpcpp/grpcpp.h", "grpc/grpc.h",
                       "linserve/v1/embedding.pb.h", "linserve/v1/embedding.grpc.pb.h"):
            for path in ("server/engine/a.h", "server/models/a.h", "server/http/a.h",
                         "server/program/serve/config.h"):
                self.assert_one({path: [header]}, "may not include protobuf")

    def test_the_client_may_include_core_only(self):
        self.assert_one({"client/files/a.cc": ["telemetry/log.h"]}, "client may not include telemetry")
        self.assert_one({"server/engine/a.cc": ["client/library/client.h"]},
                        "engine may not include client")

    def test_the_program_may_not_reach_a_library_through_a_layer(self):
        self.assert_one({"server/program/main.cc": ["rpc/server.h"],
                         "server/rpc/server.h": ["grpcpp/server.h"]},
                        "program may not reach protobuf", "server/rpc/server.h > grpcpp/server.h")
        self.assert_one({"server/program/serve/config.h": ["models/registry.h"],
                         "server/models/registry.h": ["models/model.h"],
                         "server/models/model.h": ["ATen/ATen.h"]},
                        "program may not reach LibTorch")

    def test_a_unit_that_reaches_both_libraries_is_found(self):
        self.assert_one({"tests/rpc/a_test.cc": ["models/registry.h", "client/library/client.h"],
                         "server/models/registry.h": ["ATen/ATen.h"],
                         "client/library/client.h": ["grpcpp/channel.h"]},
                        "tests/rpc/a_test.cc: reaches both LibTorch and protobuf")

    def test_a_layer_that_the_table_does_not_know_is_found(self):
        self.assert_one({"server/extra/a.h": []}, "extra has no line")

    def test_a_folder_that_includes_one_above_it_is_found(self):
        self.assert_one({"server/core/status/a.h": ["core/tensor/tensor.h"], "server/core/tensor/tensor.h": []},
                        "server/core/status/a.h:1: server/core/status may not include server/core/tensor")

    def test_a_folder_without_a_place_in_the_order_is_found(self):
        self.assert_one({"server/core/extra/a.h": []}, "server/core/extra/a.h: its folder has no place in FOLDERS")
        self.assert_one({"server/http/extra/a.h": []}, "its folder has no place in FOLDERS")

    def test_a_declaration_of_what_may_not_be_included_is_found(self):
        self.assert_one({"server/core/tensor/a.h": ["class Engine;"],
                         "server/engine/engine.h": ["class Engine final : public Base { int x; }"]},
                        "server/core/tensor/a.h:1: server/core/tensor may not declare Engine of server/engine")
        self.assertEqual(violations({"server/rpc/calls/a.h": ["class Engine;"],
                                     "server/engine/engine.h": ["class Engine { int x; }"]}), [])

    def test_two_classes_of_one_name_are_found(self):
        both = {"server/serving/a.h": ["namespace linserve {", "struct Load { int x; }"],
                "client/load/b.h": ["namespace linserve {", "class ABSL_LOCKABLE Load { int x; }"]}
        self.assert_one(both, "linserve::Load is defined in")
        both["client/load/b.h"][0] = "namespace linserve::client {"
        self.assertEqual(violations(both), [])

    def test_two_functions_that_only_their_numbers_tell_apart_are_found(self):
        def source(function):
            return ["namespace linserve {", "namespace {", function + " {", "}", "}  // namespace", "}"]

        of_bytes, of_count = source("Item ItemOf(size_t bytes)"), source("Item ItemOf(int count)")
        self.assert_one({"server/rpc/a.cc": of_bytes, "server/rpc/guards/b.cc": of_count},
                        "guards/b.cc: ItemOf() of numbers stands in server/rpc/a.cc")
        self.assertEqual(violations({"server/rpc/a.cc": of_bytes, "server/rest/b.cc": of_count}), [])
        of_name = source("Item ItemOf(const std::string& name)")
        self.assertEqual(violations({"server/rpc/a.cc": of_bytes, "server/rpc/b.cc": of_name}), [])

    def test_a_product_that_is_asked_for_elsewhere_is_found(self):
        for call in ("at::matmul(a, b);", "at::mm_out(c, a, b);"):
            self.assert_one({"server/attention/linear/math.cc": ["  return " + call]}, "math.cc", "product.cc")
            self.assertEqual(violations({"server/attention/rows/product.cc": [call]}), [])

    def test_a_cycle_of_includes_ends(self):
        self.assertEqual(violations({"server/core/files/a.cc": ["core/files/a.h"],
                                     "server/core/files/a.h": ["core/files/b.h"],
                                     "server/core/files/b.h": ["core/files/a.h"]}), [])


if __name__ == "__main__":
    unittest.main()
