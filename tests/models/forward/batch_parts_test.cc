#include "models/forward/batch_parts.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "core/workload/random_item.h"
#include "models/model_fixture.h"

namespace linserve {
namespace {

using ::testing::ElementsAre;

std::vector<BatchPart> Whole(int64_t sequences) { return {{0, sequences}}; }

TEST(ShareOut, IsWholeForOneThreadOneSequenceOrFewRows) {
  EXPECT_EQ(ShareOut(std::vector<int64_t>(50, 100), 1), Whole(50));
  EXPECT_EQ(ShareOut({5000}, 2), Whole(1));
  EXPECT_EQ(ShareOut({100, 100}, 2), Whole(2));
}

TEST(ShareOut, CutsWhereTheRowsAreAboutEqual) {
  EXPECT_THAT(ShareOut({300, 300, 300, 300}, 2), ElementsAre(BatchPart{0, 2}, BatchPart{2, 2}));
  EXPECT_THAT(ShareOut({600, 100, 100, 100, 300}, 2),
              ElementsAre(BatchPart{0, 1}, BatchPart{1, 4}));
}

TEST(ShareOut, KeepsPartsSmallSoThatThreadsEndTogether) {
  const auto parts = ShareOut(std::vector<int64_t>(100, 512), 2);
  EXPECT_EQ(parts.size(), 100U);
  int64_t next = 0;
  for (const BatchPart& sequences : parts) {
    EXPECT_EQ(sequences.first, next);
    next += sequences.count;
  }
  EXPECT_EQ(next, 100);
}

TEST(ShareOut, LeavesABatchWholeInWhichOneSequenceWouldKeepTheOthersWaiting) {
  EXPECT_EQ(ShareOut({4096, 100, 100}, 2), Whole(3));
  EXPECT_EQ(ShareOut({2000, 2000}, 8), Whole(2));
}

struct PartsCase {
  const char* name;
  const char* architecture;
  const char* params;
};

std::ostream& operator<<(std::ostream& stream, const PartsCase& each) {
  return stream << each.name;
}

class SideBySideTest : public ModelFixture, public testing::WithParamInterface<PartsCase> {};

TEST_P(SideBySideTest, ASequenceComesOutAsIfItWereAloneOnOneThread) {
  const std::string directory = Init(GetParam().architecture, GetParam().params);
  auto model = Load(directory);
  const Signature& signature = model->info().signature;
  const auto lengths = LengthDistribution::Parse("uniform:1,40");
  std::vector<Item> items;
  std::vector<TensorMap> alone;
  for (int i = 0; i < 60; ++i) {
    items.push_back(RandomItem(signature, *lengths, random_));
    for (const OutputSpec& output : signature.outputs) {
      items.back().options.outputs.push_back(output.name);
    }
    alone.push_back(Compute(*model, {items.back()})[0]);
  }
  model = Load(directory, {.threads = 3});
  for (const Padding padding : {Padding::kPacked, Padding::kBucket, Padding::kFixed}) {
    const auto together = Compute(*model, items, padding);
    ASSERT_EQ(together.size(), items.size());
    for (size_t i = 0; i < items.size(); ++i) {
      ASSERT_LT(LargestDifference(together[i], alone[i]), kTolerance)
          << Name(padding) << ", sequence " << i;
    }
  }
}

TEST_P(SideBySideTest, ForgottenSequencesAreLeftOutAndTheOthersAreAsBefore) {
  auto model = Load(Init(GetParam().architecture, GetParam().params), {.threads = 3});
  const auto lengths = LengthDistribution::Parse("uniform:30,40");
  std::vector<Item> items;
  for (int i = 0; i < 60; ++i) {
    items.push_back(RandomItem(model->info().signature, *lengths, random_));
  }
  const auto whole = Compute(*model, items);
  std::vector<const Item*> pointers;
  for (const Item& item : items) pointers.push_back(&item);
  const Padder padder(model->info().signature, Padding::kPacked);
  auto forward = model->Start(padder.Pad(pointers));
  ASSERT_TRUE(forward.ok()) << forward.status();
  size_t left_out = 0;
  for (size_t i = 0; i < 30; ++i) left_out += (*forward)->Forget(i) ? 1 : 0;
  while (!*(*forward)->Advance()) continue;
  const auto results = (*forward)->TakeResults();
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_GT(left_out, 0u);
  EXPECT_TRUE(results->front()->empty());
  for (size_t i = 30; i < 60; ++i)
    ASSERT_LT(LargestDifference(*(*results)[i], whole[i]), kTolerance);
}

INSTANTIATE_TEST_SUITE_P(
    All, SideBySideTest,
    testing::Values(
        PartsCase{
            "LinformerLM", "linformer.LinformerLM",
            R"({"num_tokens": 50, "dim": 16, "seq_len": 40, "depth": 2, "k": 8, "heads": 4})"},
        PartsCase{
            "Reversible", "linformer.Linformer",
            R"({"dim": 16, "seq_len": 40, "depth": 2, "k": 8, "heads": 4, "reversible": true})"},
        PartsCase{
            "EncDec", "linformer_pytorch.LinformerEncDec",
            R"({"enc_num_tokens": 30, "enc_input_size": 40, "enc_channels": 12, "enc_dim_k": 8,
                 "enc_nhead": 3, "enc_depth": 2, "dec_num_tokens": 30, "dec_input_size": 40,
                 "dec_channels": 12, "dec_dim_k": 8, "dec_nhead": 3, "dec_depth": 2})"},
        PartsCase{"CausalLat", "linear_attention_transformer.LinearAttentionTransformerLM",
                  R"({"num_tokens": 30, "dim": 16, "heads": 4, "depth": 2, "max_seq_len": 40,
                 "causal": true, "local_attn_window_size": 8, "n_local_attn_heads": 2})"},
        PartsCase{"Context", "linear_attention_transformer.LinearAttentionTransformer",
                  R"({"dim": 16, "heads": 4, "depth": 2, "max_seq_len": 40,
                 "receives_context": true})"},
        PartsCase{"Performer", "performer_pytorch.PerformerLM",
                  R"({"num_tokens": 30, "dim": 16, "heads": 4, "dim_head": 8, "depth": 2,
                 "max_seq_len": 40, "causal": true})"},
        PartsCase{"Multihead", "linear_multihead_attention.LinearMultiheadAttention",
                  R"({"embed_dim": 12, "num_heads": 3, "seq_len": 40, "proj_k": 8})"},
        PartsCase{"Taylor", "linserve.Encoder",
                  R"({"attention": "taylor", "dim": 12, "heads": 3, "depth": 2})"}),
    [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace linserve
