#include "models/checkpoint/checkpoint.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "core/files/safetensors.h"
#include "models/model_fixture.h"

namespace linserve {
namespace {

constexpr char kParams[] = R"({"dim": 8, "seq_len": 6, "depth": 1, "k": 4, "heads": 2})";

class CheckpointTest : public ModelFixture {
 protected:
  std::string directory_ = Init("linformer.Linformer", kParams);
  std::string path_ = directory_ + "/model.safetensors";

  TensorMap Tensors() const { return ReadSafetensors(path_)->tensors; }

  // Replaces the checkpoint and says what loading it gives: "" if it loads.
  std::string ErrorWith(const TensorMap& tensors) {
    EXPECT_TRUE(WriteSafetensors(path_, tensors).ok());
    auto model = LoadModel(directory_, {});
    return model.ok() ? "" : std::string(model.status().message());
  }

  static TensorMap Prefixed(const TensorMap& tensors, const std::string& prefix) {
    TensorMap prefixed;
    for (const auto& [name, tensor] : tensors) prefixed[prefix + name] = tensor;
    return prefixed;
  }
};

TEST_F(CheckpointTest, ListsEveryMissingUnexpectedAndMisshapenTensor) {
  TensorMap tensors = Tensors();
  tensors.erase("net.layers.0.0.fn.proj_k");
  tensors.erase("net.layers.0.1.fn.w1.bias");
  tensors["stranger"] = Tensor::FromFloats({2}, {1, 2});
  tensors["net.layers.0.0.norm.weight"] = Tensor::FromFloats({3}, {1, 2, 3});
  const std::string error = ErrorWith(tensors);
  EXPECT_NE(error.find("missing from the file (2):"), std::string::npos) << error;
  EXPECT_NE(error.find("net.layers.0.0.fn.proj_k [6, 4]"), std::string::npos) << error;
  EXPECT_NE(error.find("net.layers.0.1.fn.w1.bias [32]"), std::string::npos) << error;
  EXPECT_NE(error.find("stranger [2]"), std::string::npos) << error;
  EXPECT_NE(error.find("net.layers.0.0.norm.weight is [3], expected [8]"), std::string::npos)
      << error;
}

TEST_F(CheckpointTest, RefusesIntegersWhereWeightsAreExpected) {
  TensorMap tensors = Tensors();
  tensors["net.layers.0.0.norm.weight"] = Tensor::FromInts({8}, std::vector<int64_t>(8, 1));
  EXPECT_NE(ErrorWith(tensors).find("is of type I64, expected a float type"), std::string::npos);
}

TEST_F(CheckpointTest, RemovesThePrefixesOfWrappersEvenIfTheyNest) {
  const Item item = Floats(5, 8);
  const TensorMap expected = Compute(*Load(directory_), {item})[0];
  const TensorMap tensors = Tensors();
  for (const std::string prefix : {"module.", "model.", "net.", "mine.", "module.net.", "0."}) {
    ASSERT_EQ(ErrorWith(Prefixed(tensors, prefix)), "") << prefix;
    EXPECT_EQ(LargestDifference(Compute(*Load(directory_), {item})[0], expected), 0);
    EXPECT_EQ(InspectModel(directory_)->prefix, prefix);
  }
}

TEST_F(CheckpointTest, TakesEveryFloatType) {
  const Item item = Floats(5, 8);
  const Tensor expected = Compute(*Load(directory_), {item})[0].at("y");
  const TensorMap tensors = Tensors();
  for (DType dtype : {DType::kF64, DType::kF16, DType::kBF16}) {
    TensorMap converted;
    for (const auto& [name, tensor] : tensors) converted[name] = *Convert(tensor, dtype);
    ASSERT_EQ(ErrorWith(converted), "") << Name(dtype);
    EXPECT_LT(LargestDifference(Compute(*Load(directory_), {item})[0].at("y"), expected),
              dtype == DType::kF64 ? 1e-6 : 0.1);
  }
}

TEST_F(CheckpointTest, ResolvesTheAliasesOfTheConfiguration) {
  TensorMap tensors = Tensors();
  tensors["elsewhere"] = tensors["net.layers.0.0.fn.proj_k"];
  tensors.erase("net.layers.0.0.fn.proj_k");
  EXPECT_NE(ErrorWith(tensors), "");
  // The tensor under its other name is no part of the model, so it must go.
  tensors.erase("elsewhere");
  tensors["net.layers.0.0.fn.proj_v"] = Tensors().at("net.layers.0.0.fn.proj_v");
  Write(directory_, "config.json",
        std::string(R"({"architecture": "linformer.Linformer", "params": )") + kParams +
            R"(, "aliases": {"net.layers.0.0.fn.proj_k": "net.layers.0.0.fn.proj_v"}})");
  EXPECT_EQ(ErrorWith(tensors), "");
}

TEST(SharedParameters, AreDeclaredOnceUnderAllTheirNames) {
  ParameterList list;
  at::Tensor slot;
  at::Tensor other;
  const Scope scope(list);
  (scope / "a").Declare("weight", slot, {2}, Init::kOnes);
  (scope / "b").Declare("weight", slot, {2}, Init::kOnes);
  scope.Declare("c", other, {1}, Init::kOnes);
  ASSERT_EQ(std::distance(list.begin(), list.end()), 2);
  EXPECT_THAT(list.begin()->names, testing::ElementsAre("a.weight", "b.weight"));
}

class SharedCheckpointTest : public testing::Test {
 protected:
  SharedCheckpointTest() {
    const Scope scope(list_);
    scope.Declare("a", slot_, {2}, Init::kOnes);
    scope.Declare("b", slot_, {2}, Init::kOnes);
    scope.DeclareBuffer("table", table_, {1}, [this] {
      ++computed_;
      return at::full({1}, 7);
    });
  }

  // Returns what loading the tensors says; empty if they fit.
  std::string Load(const TensorMap& tensors) {
    const AlignedCheckpoint checkpoint = AlignCheckpoint(list_, {tensors, {}}, {});
    if (checkpoint.difference.empty()) LoadParameters(list_, checkpoint, {}, at::kCPU);
    return checkpoint.difference.ToString();
  }

  ParameterList list_;
  at::Tensor slot_;
  at::Tensor table_;
  int computed_ = 0;
};

TEST_F(SharedCheckpointTest, AnyOfTheNamesOfASharedTensorSuffices) {
  const Tensor values = Tensor::FromFloats({2}, {3, 4});
  for (const TensorMap& tensors : {TensorMap{{"a", values}}, TensorMap{{"b", values}},
                                   TensorMap{{"a", values}, {"b", values}}}) {
    ASSERT_EQ(Load(tensors), "");
    EXPECT_EQ(slot_[1].item<float>(), 4);
  }
  EXPECT_NE(Load({}).find("a [2]"), std::string::npos);
}

TEST_F(SharedCheckpointTest, NamesOfOneTensorMustAgree) {
  const std::string error =
      Load({{"a", Tensor::FromFloats({2}, {3, 4})}, {"b", Tensor::FromFloats({2}, {3, 5})}});
  EXPECT_NE(error.find("b differs from a"), std::string::npos) << error;
}

TEST_F(SharedCheckpointTest, ABufferIsTheFilesOrElseTheFormulas) {
  const Tensor values = Tensor::FromFloats({2}, {3, 4});
  ASSERT_EQ(Load({{"a", values}}), "");
  EXPECT_EQ(table_.item<float>(), 7);
  EXPECT_EQ(computed_, 1);
  ASSERT_EQ(Load({{"a", values}, {"table", Tensor::FromFloats({1}, {9})}}), "");
  EXPECT_EQ(table_.item<float>(), 9);
  EXPECT_NE(Load({{"a", values}, {"b", values}, {"c", values}}), "");
  EXPECT_EQ(computed_, 1) << "computed for a file that does not fit, or has it";
}

// A file of 16 bits is F32 until its weights are packed: so modules are prepared one by one.
TEST(ParameterList, LoadsWhatAModuleHasAndPreparesItBeforeTheNext) {
  ParameterList list;
  std::array<at::Tensor, 5> slots;
  std::vector<std::string> happened;
  const Scope root(list);
  const auto declare = [&](const Scope& scope, size_t slot) {
    scope.Declare("weight", slots.at(slot), {1}, Init::kOnes);
  };
  const auto prepare = [&](const Scope& scope, const std::string& what) {
    scope.AfterLoading([&, what](DType products) {
      happened.push_back(what + " for " + std::string(Name(products)));
    });
  };
  for (const int layer : {0, 1}) {
    const Scope scope = root / "layers" / layer;
    // It changes tensors that are declared after it.
    prepare(scope, "layer");
    declare(scope / "first", static_cast<size_t>(2 * layer));
    prepare(scope / "first", "first");
    declare(scope / "second", static_cast<size_t>(2 * layer + 1));
  }
  prepare(root, "all");
  declare(root / "norm", 4);
  list.Load(DType::kBF16, [&](const Parameter& loaded) { happened.push_back(loaded.name()); });
  EXPECT_THAT(happened, testing::ElementsAre(
                            "layers.0.first.weight", "layers.0.second.weight", "layer for BF16",
                            "first for BF16", "layers.1.first.weight", "layers.1.second.weight",
                            "layer for BF16", "first for BF16", "norm.weight", "all for BF16"));
}

TEST(LargeParameters, AreRefusedBeforeTheyAreMade) {
  ParameterList list;
  at::Tensor large;
  const Scope scope(list);
  scope.DeclareBuffer("table", large, {int64_t{1} << 31, 1 << 14},
                      []() -> at::Tensor { throw std::logic_error("it was made"); });
  const auto message = [](const auto& function) -> std::string {
    try {
      function();
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  for (const std::string& text :
       {message([&] { InitParameters(list, 1); }),
        message([&] { LoadParameters(list, AlignCheckpoint(list, {}, {}), {}, at::kCPU); })}) {
    EXPECT_NE(text.find("would take 128.0 TiB"), std::string::npos) << text;
    EXPECT_NE(text.find("the largest is table [2147483648, 16384]"), std::string::npos) << text;
  }
}

TEST_F(CheckpointTest, MissingWeightsAreAnErrorThatNamesTheFile) {
  std::filesystem::remove(path_);
  const auto model = LoadModel(directory_, {});
  EXPECT_TRUE(absl::IsNotFound(model.status()));
  EXPECT_NE(model.status().message().find("model.safetensors"), absl::string_view::npos);
}

}  // namespace
}  // namespace linserve
