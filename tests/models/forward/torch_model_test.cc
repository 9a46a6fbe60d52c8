#include <gtest/gtest.h>

#include <cmath>

#include "core/tensor/row_scale.h"
#include "models/model_fixture.h"

namespace linserve {
namespace {

class TorchModelTest : public ModelFixture {
 protected:
  std::unique_ptr<Model> model_ =
      Load(Init("linformer.LinformerLM", R"({"num_tokens": 30, "dim": 16, "seq_len": 32, "depth": 2,
                                             "k": 8, "heads": 4})"));
};

float At(const Tensor& rows, int64_t row, int64_t column) {
  return rows.data<float>()[row * rows.shape()[1] + column];
}

TEST_F(TorchModelTest, GivesTheDefaultOutputIfNoneIsNamedAndOnlyThoseThatAre) {
  Item item = Tokens(5, 30);
  EXPECT_EQ(Compute(*model_, {item})[0].size(), 1u);
  EXPECT_EQ(Compute(*model_, {item})[0].at("embeddings").shape(), (Shape{5, 16}));
  item.options.outputs = {"y"};
  const TensorMap logits = Compute(*model_, {item})[0];
  EXPECT_EQ(logits.size(), 1u);
  EXPECT_EQ(logits.at("y").shape(), (Shape{5, 30}));
}

TEST_F(TorchModelTest, PoolsTheRowsOfEachSequenceAsItsOptionsAsk) {
  Item item = Tokens(7, 30);
  const Tensor rows = Compute(*model_, {item})[0].at("embeddings");
  std::vector<Item> items;
  for (Pooling pooling : {Pooling::kMean, Pooling::kCls, Pooling::kLast, Pooling::kMax}) {
    item.options.pooling = pooling;
    items.push_back(item);
  }
  const auto pooled = Compute(*model_, items);
  for (int64_t column = 0; column < 16; ++column) {
    double sum = 0;
    float largest = At(rows, 0, column);
    for (int64_t row = 0; row < 7; ++row) {
      sum += At(rows, row, column);
      largest = std::max(largest, At(rows, row, column));
    }
    EXPECT_NEAR(pooled[0].at("embeddings").data<float>()[column], sum / 7, 1e-5);
    EXPECT_NEAR(pooled[1].at("embeddings").data<float>()[column], At(rows, 0, column), 1e-5);
    EXPECT_NEAR(pooled[2].at("embeddings").data<float>()[column], At(rows, 6, column), 1e-5);
    EXPECT_NEAR(pooled[3].at("embeddings").data<float>()[column], largest, 1e-5);
  }
  EXPECT_EQ(pooled[0].at("embeddings").shape(), (Shape{16}));
}

TEST_F(TorchModelTest, NormalisesEachRowToLengthOne) {
  Item item = Tokens(6, 30);
  item.options.normalize = true;
  const Tensor rows = Compute(*model_, {item})[0].at("embeddings");
  for (int64_t row = 0; row < 6; ++row) {
    double squares = 0;
    for (int64_t column = 0; column < 16; ++column) squares += std::pow(At(rows, row, column), 2);
    EXPECT_NEAR(squares, 1, 1e-5);
  }
}

TEST_F(TorchModelTest, ConvertsTheResultToTheTypeAskedFor) {
  Item item = Tokens(6, 30);
  const Tensor exact = Compute(*model_, {item})[0].at("embeddings");
  for (DType dtype : {DType::kF16, DType::kBF16}) {
    item.options.dtype = dtype;
    const Tensor rows = Compute(*model_, {item})[0].at("embeddings");
    EXPECT_EQ(rows.dtype(), dtype);
    EXPECT_LT(LargestDifference(*Convert(rows, DType::kF32), exact), 0.05);
  }
}

TEST_F(TorchModelTest, GivesInt8RowsWithTheirScale) {
  for (const Pooling pooling : {Pooling::kNone, Pooling::kMean}) {
    Item item = Tokens(6, 30);
    item.options.pooling = pooling;
    const Tensor exact = Compute(*model_, {item})[0].at("embeddings");
    item.options.dtype = DType::kI8;
    TensorMap results = Compute(*model_, {item})[0];
    EXPECT_EQ(results.at("embeddings").dtype(), DType::kI8);
    const Tensor scale = results.at("embeddings_scale");
    ASSERT_TRUE(Dequantize(results).ok());
    const Tensor rows = results.at("embeddings");
    ASSERT_EQ(rows.shape(), exact.shape());
    for (int64_t i = 0; i < rows.elements(); ++i) {
      // The difference is half a step at most, and what f32 rounds.
      ASSERT_NEAR(rows.data<float>()[i], exact.data<float>()[i],
                  0.501 * scale.data<float>()[i / 16]);
    }
  }
}

TEST_F(TorchModelTest, ServesDifferentOptionsInOneBatch) {
  std::vector<Item> items;
  for (int i = 0; i < 6; ++i) {
    items.push_back(Tokens(3 + i, 30));
    items.back().options.pooling = i % 2 == 0 ? Pooling::kMean : Pooling::kNone;
    items.back().options.normalize = i % 3 == 0;
  }
  const auto together = Compute(*model_, items);
  for (size_t i = 0; i < items.size(); ++i) {
    EXPECT_LT(LargestDifference(together[i], Compute(*model_, {items[i]})[0]), 1e-5) << i;
  }
}

TEST_F(TorchModelTest, ComputesInBfloat16CloseToFloat32) {
  SKIP_WITHOUT_TYPE("bf16");
  const std::string directory =
      Init("linformer.LinformerLM", R"({"num_tokens": 30, "dim": 64, "seq_len": 32, "depth": 2,
                                        "k": 16, "heads": 4})");
  auto exact = Load(directory);
  ModelLoadOptions options;
  options.dtype = "bf16";
  auto rounded = Load(directory, options);
  EXPECT_EQ(rounded->info().dtype, DType::kBF16);
  EXPECT_LT(rounded->info().bytes, exact->info().bytes);
  for (int64_t length : {1, 9, 32}) {
    const Item item = Tokens(length, 30);
    EXPECT_GE(SmallestCosine(Compute(*exact, {item})[0].at("embeddings"),
                             Compute(*rounded, {item})[0].at("embeddings")),
              0.999);
  }
}

TEST_F(TorchModelTest, TakesOneLayerAStep) {
  const Item item = Tokens(4, 30);
  const Padder padder(model_->info().signature, Padding::kPacked);
  auto forward = model_->Start(padder.Pad({&item}));
  ASSERT_TRUE(forward.ok());
  EXPECT_FALSE(*(*forward)->Advance());
  EXPECT_TRUE(*(*forward)->Advance());
}

TEST_F(TorchModelTest, LeavesItsInputsAsTheyWere) {
  auto stack = Load(
      Init("linformer.Linformer", R"({"dim": 16, "seq_len": 32, "depth": 1, "k": 8, "heads": 2})"));
  const Item item = Floats(8, 16);
  const Tensor before = *Convert(*Convert(item.inputs.at("x"), DType::kF64), DType::kF32);
  const Tensor first = Compute(*stack, {item})[0].at("y");
  EXPECT_EQ(LargestDifference(item.inputs.at("x"), before), 0);
  EXPECT_EQ(LargestDifference(Compute(*stack, {item})[0].at("y"), first), 0);
}

}  // namespace
}  // namespace linserve
