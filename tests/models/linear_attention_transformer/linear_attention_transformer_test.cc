#include <algorithm>

#include "models/linear_attention_transformer/fixture.h"

namespace linserve {
namespace {

using LatTest = ModelFixture;

// Puts zeros (or token 0) before or after the rows.
Tensor WithZeros(const Tensor& x, int64_t before, int64_t after) {
  Shape shape = x.shape();
  shape[0] += before + after;
  auto [padded, bytes] = Tensor::Allocate(x.dtype(), shape);
  const size_t row_bytes = x.byte_size() / static_cast<size_t>(x.shape()[0]);
  std::copy_n(x.bytes(), x.byte_size(), bytes + static_cast<size_t>(before) * row_bytes);
  return padded;
}

TEST_F(LatTest, AutopadderComputesPaddingOnTheRightAsMaskedRows) {
  // The shift and Linformer's projections do not see the mask, so that the padding shows.
  for (const char* more : {R"("shift_tokens": true)", R"("linformer_settings": {"k": 5})"}) {
    const std::string params =
        R"({"dim": 12, "depth": 2, "max_seq_len": 32, "heads": 3, "n_local_attn_heads": 1,
            "local_attn_window_size": 8, )" +
        std::string(more) + "}";
    const auto bare = Make(kLatStack, params);
    const auto wrapped = Make(kLatStack, params, kPadRight);
    const Item item = Floats(13, 12);
    Item padded;
    padded.inputs["x"] = WithZeros(item.inputs.at("x"), 0, 3);
    padded.inputs["input_mask"] = MaskOf(16, 0, 13);
    const Tensor expected = Compute(*bare, {padded})[0].at("y").Rows(0, 13);
    const Tensor result = Compute(*wrapped, {item})[0].at("y");
    EXPECT_LT(LargestDifference(result, expected), kTolerance) << more;
    EXPECT_GT(LargestDifference(Compute(*bare, {item})[0].at("y"), expected), 1e-3) << more;
  }
}

TEST_F(LatTest, AutopadderOnTheLeftMovesTokensToLaterPositions) {
  const std::string params =
      R"({"num_tokens": 30, "dim": 12, "depth": 2, "max_seq_len": 24, "heads": 3, "dim_head": 4,
          "causal": true, "blindspot_size": 6, "n_local_attn_heads": 1,
          "local_attn_window_size": 8})";
  const auto bare = Make(kLatLanguageModel, params);
  const auto wrapped = Make(kLatLanguageModel, params, kPadLeft);
  Item item = Tokens(13, kVocabulary);
  item.inputs["input_mask"] = MaskOf(13, 2, 13);
  Item padded;  // to the least common multiple of window and blind spot
  padded.inputs["x"] = WithZeros(item.inputs.at("x"), 11, 0);
  padded.inputs["input_mask"] = MaskOf(24, 13, 24);
  const Tensor expected = Compute(*bare, {padded})[0].at("embeddings").Rows(11, 24);
  EXPECT_LT(LargestDifference(Compute(*wrapped, {item})[0].at("embeddings"), expected), kTolerance);
}

TEST_F(LatTest, AutopadderNeverPadsPastWhatTheModelTakes) {
  const std::string params =
      R"({"num_tokens": 30, "dim": 12, "depth": 1, "max_seq_len": 16, "heads": 3, "dim_head": 4,
          "causal": true, "blindspot_size": 6, "local_attn_window_size": 8})";
  const auto bare = Make(kLatLanguageModel, params);
  const auto wrapped = Make(kLatLanguageModel, params, kPadRight);
  const Item item = Tokens(15, kVocabulary);  // 18 would be needed
  EXPECT_LT(LargestDifference(Compute(*wrapped, {item})[0], Compute(*bare, {item})[0]), kTolerance);
}

TEST_F(LatTest, RefusesAContextThatItDoesNotReceive) {
  const auto model = Make(kLatStack, R"({"dim": 12, "depth": 1, "max_seq_len": 16, "heads": 3})");
  for (const char* input : {"context", "context_mask"}) {
    Item item = Floats(5, 12);
    item.inputs[input] = std::string(input) == "context" ? RandomFloats({3, 12}) : RandomMask(3);
    const absl::Status status = Validate(model->info().signature, item);
    EXPECT_EQ(status.message(), "input '" + std::string(input) +
                                    "': the model has no such input, expected one of "
                                    "'x', 'input_mask'");
  }
}

TEST_F(LatTest, RequiresTheContextThatItReceives) {
  const auto model = Make(kLatStack, R"({"dim": 12, "depth": 1, "max_seq_len": 16, "heads": 3,
                                         "receives_context": true})");
  const absl::Status status = Validate(model->info().signature, Floats(5, 12));
  EXPECT_NE(status.message().find("'context': it is missing"), absl::string_view::npos) << status;
}

TEST_F(LatTest, LimitsLengthsToThoseOfItsTables) {
  const auto longest = [&](const std::string& architecture, const std::string& more, char letter) {
    const auto model = Make(architecture, R"({"dim": 12, "depth": 1, "max_seq_len": 20, "heads": 3,
                                              "local_attn_window_size": 8)" +
                                              more + "}");
    return LongestFor(model->info().signature, Item(), letter);
  };
  EXPECT_EQ(longest(kLatStack, "", 'n'), 0);
  EXPECT_EQ(longest(kLatStack, R"(, "linformer_settings": {"k": 4})", 'n'), 20);
  EXPECT_EQ(longest(kLatStack, R"(, "receives_context": true,
                                    "context_linformer_settings": {"seq_len": 9, "k": 4})",
                    'm'),
            9);
  const std::string tokens = R"(, "num_tokens": 30)";
  EXPECT_EQ(longest(kLatLanguageModel, tokens, 'n'), 24);  // whole rows of the axial table
  EXPECT_EQ(longest(kLatLanguageModel, tokens + R"(, "use_rotary_emb": true)", 'n'), 20);
  EXPECT_EQ(longest(kLatLanguageModel, tokens + R"(, "use_axial_pos_emb": false)", 'n'), 20);
  EXPECT_EQ(longest(kLatLanguageModel, tokens + R"(, "linformer_settings": {"k": 4})", 'n'), 20);
}

TEST_F(LatTest, AllMaskedGivesFiniteRows) {
  for (const char* more :
       {R"("n_local_attn_heads": 2)", R"("causal": true, "n_local_attn_heads": 1)",
        R"("attend_axially": true)", R"("receives_context": true)"}) {
    const auto model = Make(kLatStack, R"({"dim": 12, "depth": 2, "max_seq_len": 16, "heads": 3,
                                           "local_attn_window_size": 4, )" +
                                           std::string(more) + "}");
    Item item = Floats(11, 12);
    item.inputs["input_mask"] = MaskOf(11, 0, 0);
    if (model->info().signature.FindInput("context") != nullptr) {
      item.inputs["context"] = RandomFloats({3, 12});
      item.inputs["context_mask"] = MaskOf(3, 0, 0);
    }
    const TensorMap result = Compute(*model, {item})[0];
    EXPECT_EQ(LargestDifference(result, result), 0) << more;  // NaN differs from itself
  }
}

TEST_F(LatTest, ComputesInBfloat16CloseToFloat32) {
  SKIP_WITHOUT_TYPE("bf16");
  for (const char* more :
       {"", R"(, "causal": true, "n_local_attn_heads": 2, "shift_tokens": true)",
        R"(, "reversible": true, "attend_axially": true, "ff_glu": true)",
        R"(, "use_rotary_emb": true, "causal": true, "blindspot_size": 8, "emb_dim": 32)",
        R"(, "linformer_settings": {"k": 16}, "pkm_layers": [2])"}) {
    const std::string directory =
        Init(kLatLanguageModel, R"({"num_tokens": 30, "dim": 64, "depth": 2, "max_seq_len": 64,
                                    "heads": 4, "dim_head": 16, "local_attn_window_size": 16)" +
                                    std::string(more) + "}");
    const auto exact = Load(directory);
    ModelLoadOptions options;
    options.dtype = "bf16";
    const auto rounded = Load(directory, options);
    for (int64_t length : {1, 20, 64}) {
      const Item item = Tokens(length, kVocabulary);
      EXPECT_GE(SmallestCosine(Compute(*exact, {item})[0].at("embeddings"),
                               Compute(*rounded, {item})[0].at("embeddings")),
                0.999)
          << more << ", " << length << " rows";
    }
  }
}

TEST_F(LatTest, CountsTheParametersAndOperationsOfAStack) {
  const ModelReport report = *InspectModel(
      Directory(kLatStack, R"({"dim": 8, "depth": 1, "max_seq_len": 16, "heads": 2})"));
  // q, k, v, out with bias; feed-forward; two norms.
  EXPECT_EQ(report.info.parameters, 3 * 64 + 72 + (8 * 32 + 32) + (32 * 8 + 8) + 2 * 16);
  // Four products of width 8; k vᵀ and q C, 4 · 4 in 2 heads; the feed-forward.
  EXPECT_NEAR(report.flops_per_token, 4 * 2 * 64 + 2 * 2 * 2 * 16 + 2 * 2 * 8 * 32, 1);
}

TEST_F(LatTest, CountsTheParametersAndOperationsOfALanguageModelWithEveryKindOfLayer) {
  const ModelReport report = *InspectModel(Directory(
      kLatLanguageModel,
      R"({"num_tokens": 50, "dim": 8, "emb_dim": 4, "depth": 1, "max_seq_len": 16, "heads": 2,
          "dim_head": 6, "causal": true, "n_local_attn_heads": 1, "local_attn_window_size": 4,
          "attend_axially": true, "receives_context": true, "ff_glu": true, "pkm_layers": [1]})"));
  const int64_t main = 3 * 12 * 8 + 12 * 8 + 8;
  const int64_t memory = 1024 * 8 + 2 * 128 + 4 * 128 * 2 * 128 + 16384 * 8;
  const int64_t axial = 3 * 64 + 72;
  const int64_t gated = 8 * 64 + 64 + 32 * 8 + 8;
  const int64_t outside = 50 * 4 + (4 + 4) * 4 + (4 * 8 + 8) + (8 * 4 + 4) + 2 * 4 + (4 * 50 + 50);
  EXPECT_EQ(report.info.parameters,
            main + memory + axial + gated + main + gated + 6 * 16 + outside);
  // One local head, which sees 4 rows and then 8, and one global head in the main layer.
  const double local = 4.0 * 6 * (4 * 4 + 3 * 4 * 8) / 16;
  const double main_flops = 4 * 2 * 8 * 12 + local + 4 * 6 * 6;
  const double memory_flops = 2 * 8 * 1024 + 2 * 8 * 128 * 128 + 4 * 1024 + 2 * 128 * 8;
  const double axial_flops = 4 * 2 * 64 + 2 * 4 * 4 * 4;
  const double gated_flops = 2 * (8 * 64 + 32 * 8);
  const double context_flops = 4 * 2 * 8 * 12 + 2 * 4 * 6 * 6;
  const double outside_flops = 2 * (4 * 8 + 8 * 4 + 4 * 50);
  const double total =
      main_flops + memory_flops + axial_flops + context_flops + 2 * gated_flops + outside_flops;
  EXPECT_NEAR(report.flops_per_token, total, 0.01 * total);
}

TEST_F(LatTest, TakesTheAxialTablesUnderTheirOlderNamesToo) {
  const std::string directory =
      Directory(kLatLanguageModel,
                R"({"num_tokens": 30, "dim": 12, "depth": 1, "max_seq_len": 16, "heads": 3,
                    "dim_head": 4, "local_attn_window_size": 8})");
  const Item item = Tokens(11, kVocabulary);
  const TensorMap expected = Compute(*Load(directory), {item})[0];
  TensorMap weights = ReadWeights(directory);
  for (const std::string index : {"0", "1"}) {
    auto table = weights.extract("pos_emb.weights." + index);
    table.key() = "pos_emb.weights_" + index;
    weights.insert(std::move(table));
  }
  WriteWeights(directory, weights);
  EXPECT_EQ(LargestDifference(Compute(*Load(directory), {item})[0], expected), 0);
}

}  // namespace
}  // namespace linserve
