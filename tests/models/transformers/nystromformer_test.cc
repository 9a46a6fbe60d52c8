// Nyströmformer: attention by landmarks, which are of one length, beside softmax attention.
#include <gmock/gmock.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <string>

#include "models/model_fixture.h"

namespace linserve {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr const char* kNystromformer = "transformers.NystromformerModel";
constexpr int64_t kWords = 30;

// Returns arguments of a small model with 5 landmarks of 8 rows each, but for these.
std::string NystromParams(const json& changed) {
  json params = json::parse(R"({
    "vocab_size": 30, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
    "intermediate_size": 16, "max_position_embeddings": 40, "num_landmarks": 5,
    "segment_means_seq_len": 40, "conv_kernel_size": 5, "pad_token_id": 3})");
  params.update(changed);
  return params.dump();
}

class NystromformerTest : public ModelFixture {
 protected:
  Item Of(int64_t length, bool masked) {
    Item item = Tokens(length, kWords);
    if (masked) item.inputs["attention_mask"] = RandomMask(length);
    return item;
  }
};

TEST_F(NystromformerTest, GivesTheSameRowsInEveryMode) {
  for (const json& changed :
       {json::object(), json{{"inv_coeff_init_option", true}, {"conv_kernel_size", nullptr}},
        json{{"num_landmarks", 40}}}) {
    SCOPED_TRACE(changed.dump());
    auto model = Make(kNystromformer, NystromParams(changed));
    ExpectTheSameInMixes(*model, 12,
                         [&](int64_t length, bool masked) { return Of(length, masked); });
  }
}

TEST_F(NystromformerTest, ComputesAShortSequenceAsIfItWerePaddedAndMasked) {
  auto model = Make(kNystromformer, NystromParams(json::object()));
  constexpr int64_t kShort = 13;
  const Item item = Tokens(kShort, kWords);
  std::vector<int64_t> ids(kLongestInput, 3);
  std::memcpy(ids.data(), item.inputs.at("x").bytes(), item.inputs.at("x").byte_size());
  Item padded;
  padded.inputs["x"] = Tensor::FromInts({kLongestInput}, ids);
  padded.inputs["attention_mask"] = MaskOf(kLongestInput, 0, kShort);
  const Tensor whole = Compute(*model, {padded})[0].at("last_hidden_state");
  const Tensor rows = Compute(*model, {item})[0].at("last_hidden_state");
  EXPECT_LT(LargestDifference(rows, whole.Rows(0, kShort)), kTolerance);
}

TEST_F(NystromformerTest, ComputesABatchOfMoreThanFitsAtOnce) {
  auto model = Make(kNystromformer, NystromParams({{"num_landmarks", 8},
                                                   {"segment_means_seq_len", 1024},
                                                   {"max_position_embeddings", 1024}}));
  std::vector<Item> items;
  for (const int64_t length : {3, 700, 1, 1024, 20, 130})
    items.push_back(Of(length, /*masked=*/true));
  ExpectTheSameAloneAndTogether(*model, items);
}

TEST_F(NystromformerTest, OfLandmarksTakesTheRowsThatTheyAreTheMeansOf) {
  const std::string uneven = NystromParams({{"segment_means_seq_len", 39}});
  EXPECT_EQ(Make(kNystromformer, uneven)->info().signature.limits[0].longest, 35);
  const std::string softmax =
      NystromParams({{"segment_means_seq_len", 5}, {"max_position_embeddings", 38}});
  EXPECT_EQ(Make(kNystromformer, softmax)->info().signature.limits[0].longest, 38);
}

TEST_F(NystromformerTest, RefusesWhatNoSequenceCouldBeComputedWith) {
  const auto error = [&](const json& changed) {
    return InitError(kNystromformer, NystromParams(changed));
  };
  EXPECT_THAT(error({{"conv_kernel_size", 4}}), HasSubstr("expected an odd number"));
  EXPECT_THAT(error({{"segment_means_seq_len", 4}}), HasSubstr("from num_landmarks = 5"));
  EXPECT_THAT(error({{"segment_means_seq_len", 45}}), HasSubstr("to max_position_embeddings = 40"));
  EXPECT_THAT(error({{"pad_token_id", 30}}), HasSubstr("less than vocab_size = 30"));
}

}  // namespace
}  // namespace linserve
