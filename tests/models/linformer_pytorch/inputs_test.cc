#include <cmath>
#include <cstring>

#include "core/sequence/signature.h"
#include "models/linformer_pytorch/fixture.h"

namespace linserve {
namespace {

constexpr const char* kShortLptBase =
    R"("input_size": 20, "channels": 8, "dim_k": 6, "dim_ff": 12, "nhead": 2, "depth": 2)";

class LptInputsTest : public ModelFixture {
 protected:
  std::unique_ptr<Model> Stack(const std::string& more, const std::string& wrapper = "null") {
    return Make(kLptStack, LptArguments(kShortLptBase, more), wrapper);
  }

  Item X(int64_t length) {
    Item item;
    item.inputs["x"] = RandomFloats({length, 8});
    return item;
  }

  static Item With(Item item, const std::string& name, Tensor tensor) {
    item.inputs[name] = std::move(tensor);
    return item;
  }

  static Tensor Y(Model& model, const Item& item, Padding padding = Padding::kPacked) {
    Item asked = item;
    asked.options.outputs = {"y"};
    return Compute(model, {asked}, padding)[0].at("y");
  }

  // Extends `tensor` with rows of zeros up to `length`.
  static Tensor Extended(const Tensor& tensor, int64_t length) {
    Shape shape = tensor.shape();
    shape[0] = length;
    auto [extended, bytes] = Tensor::Allocate(tensor.dtype(), shape);
    std::memcpy(bytes, tensor.bytes(), tensor.byte_size());
    return extended;
  }
};

TEST_F(LptInputsTest, AMaskOnThePaddingGivesTheRowsOfTheShortSequence) {
  for (const char* more : {R"("parameter_sharing": "none")", R"("causal": true)",
                           R"("method": "no_params")", R"("method": "convolution")"}) {
    const auto model = Stack(more);
    const Item item = X(13);
    const Item padded =
        With(With(item, "x", Extended(item.inputs.at("x"), 20)), "input_mask", MaskOf(20, 0, 13));
    EXPECT_LT(LargestDifference(Y(*model, padded).Rows(0, 13), Y(*model, item)), kTolerance)
        << more;
  }
}

TEST_F(LptInputsTest, MaskedKeysOfFullAttentionTakeWeightAsInThePackage) {
  const auto model = Stack(R"("full_attention": true)");
  const Item item = X(13);
  const Item padded =
      With(With(item, "x", Extended(item.inputs.at("x"), 20)), "input_mask", MaskOf(20, 0, 13));
  EXPECT_GT(LargestDifference(Y(*model, padded).Rows(0, 13), Y(*model, item)), 1e-3);
}

TEST_F(LptInputsTest, AMaskOfAllOnesChangesNothingAndOneOfNoneStaysFinite) {
  for (const char* more : {"", R"("full_attention": true)", R"("causal": true)"}) {
    const auto model = Stack(more);
    const Item item = X(9);
    const Tensor plain = Y(*model, item);
    for (const char* name : {"input_mask", "embeddings_mask"}) {
      EXPECT_LT(LargestDifference(Y(*model, With(item, name, MaskOf(9, 0, 9))), plain), kTolerance);
      const Tensor hidden = Y(*model, With(item, name, MaskOf(9, 0, 0)));
      EXPECT_GT(LargestDifference(hidden, plain), 1e-3);
      EXPECT_EQ(LargestDifference(hidden, hidden), 0);  // not NaN
    }
  }
}

TEST_F(LptInputsTest, TheMaskOfEmbeddingsHidesQueries) {
  // One slot, so that the queries make no difference, and nothing but attention.
  const auto model = Make(kLptAttention, R"({"input_size": 20, "channels": 8, "dim": 4, "dim_k": 1,
                                             "nhead": 2})");
  const Item item = X(7);
  EXPECT_LT(
      LargestDifference(Y(*model, With(item, "embeddings_mask", MaskOf(7, 0, 0))), Y(*model, item)),
      kTolerance);
}

TEST_F(LptInputsTest, ADecoderRequiresEmbeddingsAndOthersHaveNone) {
  const auto decoder = Stack(R"("decoder_mode": true)");
  EXPECT_EQ(Validate(decoder->info().signature, X(5)).message(),
            "input 'embeddings': it is missing, expected a tensor [n, 8]");
  const Item both = With(X(5), "embeddings", RandomFloats({4, 8}));
  EXPECT_TRUE(absl::IsInvalidArgument(Validate(decoder->info().signature, both)));
  EXPECT_TRUE(absl::IsInvalidArgument(Validate(Stack("")->info().signature, both)));
}

TEST_F(LptInputsTest, InThePadderEmbeddingsAndMasksHaveLengthsOfTheirOwn) {
  const auto decoder = Stack(R"("decoder_mode": true)", kLptPadder);
  Item item = With(X(5), "embeddings", RandomFloats({14, 8}));
  item = With(item, "input_mask", MaskOf(20, 0, 20));
  const Tensor all = Y(*decoder, item);
  EXPECT_EQ(all.shape(), (Shape{5, 8}));
  // A mask is false past its end.
  EXPECT_LT(LargestDifference(Y(*decoder, With(item, "input_mask", MaskOf(14, 0, 14))), all),
            kTolerance);
  EXPECT_GT(LargestDifference(Y(*decoder, With(item, "input_mask", MaskOf(13, 0, 13))), all), 1e-4);
  EXPECT_LT(LargestDifference(Y(*decoder, With(item, "input_mask", MaskOf(3, 0, 3))),
                              Y(*decoder, With(item, "input_mask", MaskOf(20, 0, 3)))),
            kTolerance);
}

TEST_F(LptInputsTest, InThePadderAMissingMaskHidesThePaddingOfXAndThoseEmbeddings) {
  const auto decoder = Stack(R"("decoder_mode": true)", kLptPadder);
  const Item item = With(X(5), "embeddings", RandomFloats({14, 8}));
  EXPECT_LT(
      LargestDifference(Y(*decoder, item), Y(*decoder, With(item, "input_mask", MaskOf(20, 0, 5)))),
      kTolerance);
}

TEST_F(LptInputsTest, ZerosComputesPaddingAsThePackageDoes) {
  const auto padder = Stack("", kLptPadder);
  const auto plain = Load(Directory(kLptStack, LptArguments(kShortLptBase, "")));
  const Item item = X(11);
  const Item whole = With(item, "x", Extended(item.inputs.at("x"), 20));
  const Tensor zeros = Y(*padder, item, Padding::kZeros);
  EXPECT_LT(LargestDifference(zeros, Y(*plain, whole).Rows(0, 11)), kTolerance);
  EXPECT_GT(LargestDifference(zeros, Y(*padder, item)), 1e-3);
  // A mask on the padding makes the two the same, also if it ends early.
  for (const int64_t length : {11, 15, 20}) {
    const Tensor mask = MaskOf(length, 0, 11);
    EXPECT_LT(LargestDifference(Y(*padder, With(item, "input_mask", mask), Padding::kZeros),
                                Y(*padder, item)),
              kTolerance);
  }
}

TEST_F(LptInputsTest, LongerThanTheInputSizeIsRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(Validate(Stack("")->info().signature, X(21))));
  const auto padder = Stack(R"("decoder_mode": true)", kLptPadder);
  const Item item = With(X(5), "embeddings", RandomFloats({20, 8}));
  EXPECT_TRUE(Validate(padder->info().signature, item).ok());
  for (const char* name : {"input_mask", "embeddings_mask"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(
        Validate(padder->info().signature, With(item, name, MaskOf(21, 0, 21)))));
  }
}

TEST_F(LptInputsTest, AnEncoderDecoderWithoutYDecodesX) {
  const auto model = Make(kLptEncDec, R"({"enc_num_tokens": 30, "dec_num_tokens": 25,
      "enc_input_size": 20, "dec_input_size": 20, "enc_channels": 8, "dec_channels": 8,
      "enc_dim_k": 6, "dec_dim_k": 6})");
  Item item;
  item.inputs["x"] = Ids(9, 25);
  const Tensor alone = Y(*model, item);
  item.inputs["y"] = item.inputs["x"];
  EXPECT_EQ(LargestDifference(Y(*model, item), alone), 0);
  // The ids that are only the encoder's need a y of their own.
  item.inputs["x"] = Tensor::FromInts({9}, std::vector<int64_t>(9, 29));
  EXPECT_TRUE(Validate(model->info().signature, item).ok());
  item.inputs.erase("y");
  EXPECT_TRUE(absl::IsInvalidArgument(Validate(model->info().signature, item)));
}

TEST_F(LptInputsTest, TheMasksOfAnEncoderDecoderReachTheEncoderOnly) {
  // A decoder with one slot that saw the mask would change; this encoder's output does not: all of
  // its keys are zeros whatever the mask.
  const std::string directory = Directory(kLptEncDec, R"({"enc_num_tokens": 30,
      "dec_num_tokens": 30, "enc_input_size": 20, "dec_input_size": 20, "enc_channels": 8,
      "dec_channels": 8, "enc_dim_k": 6, "dec_dim_k": 6, "enc_depth": 1, "enc_nhead": 1,
      "dec_nhead": 1})");
  TensorMap weights = ReadWeights(directory);
  for (auto& [name, tensor] : weights) {
    const bool dead = name.starts_with("encoder.") && (name.find("to_k") != std::string::npos ||
                                                       name.find("to_v") != std::string::npos);
    if (dead) tensor = Tensor::Allocate(DType::kF32, tensor.shape()).first;
  }
  WriteWeights(directory, weights);
  const auto model = Load(directory);
  Item item;
  item.inputs["x"] = Ids(9, 30);
  EXPECT_EQ(
      LargestDifference(Y(*model, With(item, "input_mask", MaskOf(9, 0, 2))), Y(*model, item)), 0);
}

TEST_F(LptInputsTest, AddsSinesAndCosinesOfPositions) {
  // No layer changes anything: w_o and w_2 are zeros, so that both norms see the embedding alone,
  // and norm(norm(x)) is norm(x).
  const std::string directory = Directory(kLptLanguageModel, R"({"num_tokens": 3, "input_size": 20,
      "channels": 4, "dim_k": 6, "dim_ff": 4, "nhead": 1, "depth": 1, "return_emb": true})");
  TensorMap weights = ReadWeights(directory);
  for (auto& [name, tensor] : weights) {
    std::vector<float> values(static_cast<size_t>(tensor.elements()), 0);
    if (name.find("norm.weight") != std::string::npos) values.assign(values.size(), 1);
    tensor = Tensor::FromFloats(tensor.shape(), values);
  }
  weights.erase("pos_emb.inv_freq");  // then the formula's
  WriteWeights(directory, weights);
  Item item;
  item.inputs["x"] = Tensor::FromInts({12}, std::vector<int64_t>(12, 1));
  const Tensor y = Y(*Load(directory), item);
  for (int64_t t = 0; t < 12; ++t) {
    const double slow = static_cast<double>(t) * std::pow(100000.0, -0.5);
    const double row[] = {std::sin(t), std::sin(slow), std::cos(t), std::cos(slow)};
    double mean = 0;
    double variance = 0;
    for (double value : row) mean += value / 4;
    for (double value : row) variance += (value - mean) * (value - mean) / 4;
    for (int64_t i = 0; i < 4; ++i) {
      EXPECT_NEAR(y.data<float>()[4 * t + i], (row[i] - mean) / std::sqrt(variance + 1e-5), 1e-4);
    }
  }
}

}  // namespace
}  // namespace linserve
