#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/files/safetensors.h"
#include "models/session_fixture.h"

namespace linserve {
namespace {

using ::testing::HasSubstr;

constexpr char kSmallStack[] = R"({"dim": 8, "seq_len": 6, "depth": 1, "k": 4, "heads": 2})";
constexpr char kWeight[] = "net.layers.0.1.fn.w1.weight";

class NonfiniteWeightsTest : public ModelFixture {
 protected:
  // A copy of the model with this number at [3, 5] of a weight, stored as `dtype`.
  std::string With(double value, DType dtype) {
    const std::string directory = Init("linformer.Linformer", kSmallStack);
    const std::string path = directory + "/model.safetensors";
    TensorMap tensors = ReadSafetensors(path)->tensors;
    const Tensor weight = *Convert(tensors.at(kWeight), DType::kF64);
    auto [changed, bytes] = Tensor::Allocate(DType::kF64, weight.shape());
    std::memcpy(bytes, weight.bytes(), weight.byte_size());
    std::memcpy(bytes + (3 * weight.shape()[1] + 5) * sizeof(double), &value, sizeof(double));
    tensors[kWeight] = *Convert(changed, dtype);
    EXPECT_TRUE(WriteSafetensors(path, tensors).ok());
    return directory;
  }

  static std::string Error(const std::string& directory, const ModelLoadOptions& options = {}) {
    const auto model = LoadModel(directory, options);
    return std::string(model.status().message());
  }
};

TEST_F(NonfiniteWeightsTest, AreRefusedByTheirFirstPlaceInEveryType) {
  for (const DType dtype : {DType::kF16, DType::kBF16, DType::kF32, DType::kF64}) {
    for (const auto& [value, name] : {std::pair(NAN, "NaN"), std::pair(-INFINITY, "-Inf")}) {
      const std::string directory = With(double{value}, dtype);
      const std::string fault = std::string(kWeight) + " holds " + name + " at position [3, 5]";
      EXPECT_THAT(Error(directory), HasSubstr(fault)) << Name(dtype);
      EXPECT_THAT(InspectModel(directory)->nonfinite, HasSubstr(fault));
      EXPECT_EQ(Error(directory, {.allow_nonfinite = true}), "");
    }
  }
}

TEST_F(NonfiniteWeightsTest, AreThoseToThatTheComputationCannotHold) {
  SKIP_WITHOUT_TYPE("bf16");
  const std::string large = With(1e39, DType::kF64);
  EXPECT_THAT(Error(large), HasSubstr("not finite in F32"));
  const std::string rounds = With(3.4e38, DType::kF32);
  EXPECT_EQ(Error(rounds), "");
  EXPECT_THAT(Error(rounds, {.dtype = "bf16"}), HasSubstr("not finite in BF16"));
}

class NonfiniteResultsTest : public ModelFixture {
 protected:
  static std::vector<absl::StatusOr<TensorMap>> Results(Model& model,
                                                        const std::vector<Item>& items) {
    const Padder padder(model.info().signature, Padding::kPacked);
    std::vector<const Item*> pointers;
    for (const Item& item : items) pointers.push_back(&item);
    auto forward = model.Start(padder.Pad(pointers));
    while (!*(*forward)->Advance()) continue;
    return *(*forward)->TakeResults();
  }

  // Rows of an output that grows with them: those of the attention alone.
  static constexpr const char* kArchitecture =
      "linear_multihead_attention.LinearMultiheadAttention";
  static constexpr const char* kArguments =
      R"({"embed_dim": 16, "num_heads": 2, "seq_len": 40, "proj_k": 7})";

  Item Scaled(float scale) {
    Item item;
    for (const char* name : {"query", "key", "value"}) {
      Tensor rows = RandomFloats({5, 16});
      std::vector<float> values(rows.data<float>(), rows.data<float>() + rows.elements());
      if (std::string(name) == "value") {
        for (float& value : values) value *= scale;
      }
      item.inputs[name] = Tensor::FromFloats({5, 16}, values);
    }
    return item;
  }
};

TEST_F(NonfiniteResultsTest, AreFaultsOfTheirSequencesAlone) {
  const auto model = Make(kArchitecture, kArguments);
  for (const Pooling pooling :
       {Pooling::kNone, Pooling::kMean, Pooling::kCls, Pooling::kLast, Pooling::kMax}) {
    for (const DType dtype : {DType::kF16, DType::kBF16, DType::kF32, DType::kF64, DType::kI8}) {
      for (const bool normalize : {false, true}) {
        std::vector<Item> items = {Scaled(1), Scaled(3e38F), Scaled(1)};
        for (Item& item : items) item.options = {{}, pooling, normalize, dtype};
        const auto results = Results(*model, items);
        EXPECT_TRUE(results[0].ok()) << results[0].status();
        EXPECT_EQ(results[1].status().code(), absl::StatusCode::kOutOfRange)
            << Name(dtype) << " " << normalize;
        EXPECT_TRUE(results[2].ok()) << results[2].status();
      }
    }
  }
}

TEST_F(NonfiniteResultsTest, AreThoseOfF16WhereItCannotHoldThem) {
  const auto model = Make(kArchitecture, kArguments);
  Item item = Scaled(1e6F);
  EXPECT_TRUE(Results(*model, {item})[0].ok());
  item.options.dtype = DType::kBF16;
  EXPECT_TRUE(Results(*model, {item})[0].ok());
  item.options.dtype = DType::kF16;
  const auto results = Results(*model, {item});
  EXPECT_THAT(std::string(results[0].status().message()),
              HasSubstr("in F16, which holds at most 65504; ask for F32 or BF16"));
  item.options.normalize = true;
  EXPECT_TRUE(Results(*model, {item})[0].ok());
}

// Rows whose norm is past F32 are no zeros.
TEST_F(NonfiniteResultsTest, AreRowsThatCannotBeNormalised) {
  const auto model = Make(kArchitecture, kArguments);
  Item item = Scaled(1e30F);
  EXPECT_TRUE(Results(*model, {item})[0].ok());
  item.options.normalize = true;
  EXPECT_EQ(Results(*model, {item})[0].status().code(), absl::StatusCode::kOutOfRange);
}

TEST_F(NonfiniteResultsTest, ComeAsTheyAreWhereTheModelAllowsThem) {
  const auto model = Load(Directory(kArchitecture, kArguments), {.allow_nonfinite = true});
  EXPECT_TRUE(Results(*model, {Scaled(3e38F)})[0].ok());
}

class NonfiniteSessionTest : public SessionFixture {};

TEST_F(NonfiniteSessionTest, IsAsItWasBeforeTheChunk) {
  const auto model = Make(kLatStack, R"({"dim": 8, "depth": 2, "heads": 2, "max_seq_len": 40,
                                         "causal": true, "n_local_attn_heads": 1,
                                         "local_attn_window_size": 4})");
  const Item item = Floats(30, 8);
  const Tensor whole = Compute(*model, {item})[0].at("y");
  for (const int64_t rows : {1, 5}) {
    const Session session = New(*model);
    Feed(*model, item, {10}, session);
    Item faulty = Floats(rows, 8);
    std::fill_n(const_cast<float*>(faulty.inputs.at("x").data<float>()), 8, 3e38F);
    const Item chunk = Chunk(faulty, 0, rows, session);
    auto forward = model->Start(Padder(model->info().signature, Padding::kPacked).Pad({&chunk}));
    ASSERT_TRUE(forward.ok()) << forward.status();
    while (!*(*forward)->Advance()) continue;
    const auto results = (*forward)->TakeResults();
    EXPECT_EQ((*results)[0].status().code(), absl::StatusCode::kOutOfRange);
    EXPECT_EQ(session->position(), 10);
    for (int64_t row = 10; row < 30; ++row) {
      const Item next = Chunk(item, row, row + 1, session);
      ASSERT_LT(LargestDifference(Compute(*model, {next})[0].at("y"), whole.Rows(row, row + 1)),
                kTolerance);
    }
  }
}

}  // namespace
}  // namespace linserve
