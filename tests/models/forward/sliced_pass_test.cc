#include "models/model_fixture.h"

namespace linserve {
namespace {

constexpr int64_t kNumTokens = 50;
constexpr int64_t kLength = 2048;
constexpr int64_t kLayers = 2;

struct SlicedModel {
  const char* architecture;
  const char* params;
  const char* dtype;
  int64_t looks;  // in a layer, at least
};

// A row of a layer is work enough for a slice of the fewest rows, 128.
const SlicedModel kModels[] = {
    {"linformer.LinformerLM",
     R"({"num_tokens": 50, "dim": 256, "seq_len": 2048, "depth": 2, "k": 64, "heads": 4})", "f32",
     32},
    {"linformer.LinformerLM",
     R"({"num_tokens": 50, "dim": 256, "seq_len": 2048, "depth": 2, "k": 64, "heads": 4})", "bf16",
     32},
    {"linserve.Encoder",
     R"({"num_tokens": 50, "dim": 256, "depth": 2, "heads": 4, "attention": "linformer", "k": 64,
         "seq_len": 2048})",
     "f32", 16},
    {"linserve.Encoder",
     R"({"num_tokens": 50, "dim": 256, "depth": 2, "heads": 4, "attention": "elu"})", "f32", 16},
    {"linear_attention_transformer.LinearAttentionTransformerLM",
     R"({"num_tokens": 50, "dim": 256, "depth": 2, "heads": 4, "max_seq_len": 2048})", "f32", 32},
    {"performer_pytorch.PerformerLM",
     R"({"num_tokens": 50, "dim": 256, "depth": 2, "heads": 4, "max_seq_len": 2048})", "f32", 32},
};

class SlicedPassTest : public ModelFixture, public testing::WithParamInterface<SlicedModel> {};

Tensor RowsOf(TensorMap outputs) {
  EXPECT_EQ(outputs.size(), 1u);
  return outputs.begin()->second;
}

// Another pass of the same model in each look changes no bit of either.
TEST_P(SlicedPassTest, IsInterruptedOftenAndGivesTheNumbersThatItGivesAlone) {
  SKIP_WITHOUT_TYPE(GetParam().dtype);
  ModelLoadOptions options;
  options.dtype = GetParam().dtype;
  const auto model = Load(Directory(GetParam().architecture, GetParam().params), options);
  const Item item = Tokens(kLength, kNumTokens);
  const Item other = Tokens(64, kNumTokens);
  const Tensor alone = RowsOf(Compute(*model, {item})[0]);
  const Tensor other_alone = RowsOf(Compute(*model, {other})[0]);

  const Padder padder(model->info().signature, Padding::kPacked);
  auto forward = model->Start(padder.Pad({&item}));
  ASSERT_TRUE(forward.ok());
  int64_t looks = 0;
  int64_t rows_done = 0;
  const auto between = [&](int64_t rows) {
    ++looks;
    rows_done += rows;
    if (looks % 8 == 1) {
      EXPECT_EQ(LargestDifference(RowsOf(Compute(*model, {other})[0]), other_alone), 0);
    }
    return true;
  };
  for (bool done = false; !done;) {
    const auto advanced = (*forward)->Advance(between);
    ASSERT_TRUE(advanced.ok()) << advanced.status();
    done = *advanced;
  }
  EXPECT_GE(looks, kLayers * GetParam().looks);
  EXPECT_LE(rows_done, kLayers * kLength);
  EXPECT_EQ(LargestDifference(RowsOf(*(*(*forward)->TakeResults())[0]), alone), 0);
}

INSTANTIATE_TEST_SUITE_P(Models, SlicedPassTest, testing::ValuesIn(kModels));

}  // namespace
}  // namespace linserve
