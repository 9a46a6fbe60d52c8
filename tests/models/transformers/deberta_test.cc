// DeBERTa: disentangled attention, a convolution behind the first layer, and masks that hide rows
// from themselves.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "models/forward/device_fixture.h"
#include "models/random_weights.h"

namespace linserve {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr const char* kDebertaV2 = "transformers.DebertaV2Model";
constexpr const char* kDeberta = "transformers.DebertaModel";
constexpr int64_t kDebertaWords = 30;

// Returns arguments of a small third version but for these.
json DebertaParams(const json& changed = json::object()) {
  json params = json::parse(R"({
    "vocab_size": 30, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
    "intermediate_size": 24, "max_position_embeddings": 42, "relative_attention": true,
    "position_buckets": 8, "pos_att_type": "p2c|c2p", "share_att_key": true,
    "norm_rel_ebd": "layer_norm", "position_biased_input": false})");
  params.update(changed);
  return params;
}

json FirstDebertaParams(const json& changed = json::object()) {
  json params = DebertaParams();
  for (const char* key : {"position_buckets", "share_att_key", "norm_rel_ebd"}) params.erase(key);
  params.update(changed);
  return params;
}

struct DebertaCase {
  const char* architecture;
  json params;
};

std::vector<DebertaCase> DebertaCases() {
  return {{kDebertaV2, DebertaParams()},
          {kDebertaV2, DebertaParams({{"conv_kernel_size", 5}, {"conv_groups", 2}})},
          {kDebertaV2, DebertaParams({{"pos_att_type", {"c2p"}},
                                      {"share_att_key", false},
                                      {"position_buckets", -1},
                                      {"max_relative_positions", 7}})},
          {kDebertaV2, DebertaParams({{"relative_attention", false},
                                      {"position_biased_input", true},
                                      {"embedding_size", 12}})},
          {kDeberta, FirstDebertaParams({{"type_vocab_size", 3}})},
          {kDeberta, FirstDebertaParams({{"pos_att_type", "p2c"}, {"num_attention_heads", 4}})}};
}

class DebertaTest : public DeviceModelTest {
 protected:
  Item Sequence(int64_t length, bool masked) {
    Item item = Tokens(length, kDebertaWords);
    if (masked) item.inputs["attention_mask"] = RandomMask(length);
    return item;
  }

  static std::string ErrorOf(const json& changed, const char* architecture = kDebertaV2) {
    return InitError(
        architecture,
        (architecture == kDebertaV2 ? DebertaParams(changed) : FirstDebertaParams(changed)).dump());
  }
};

TEST_F(DebertaTest, MayHaveATableOfPositionsThatAreAddedToNothing) {
  const std::string directory = Directory(kDebertaV2, DebertaParams().dump());
  TensorMap weights = ReadWeights(directory);
  weights["embeddings.position_embeddings.weight"] = RandomFloats({42, 16});
  WriteWeights(directory, weights);
  EXPECT_THAT(LoadModel(directory, {}).status().message(), "");
}

TEST_F(DebertaTest, GivesTheSameRowsInEveryMode) {
  for (const DebertaCase& one : DebertaCases()) {
    SCOPED_TRACE(one.architecture + one.params.dump());
    const auto model = Make(one.architecture, one.params.dump());
    ExpectTheSameInMixes(*model, 8,
                         [&](int64_t length, bool masked) { return Sequence(length, masked); });
  }
}

TEST_F(DebertaTest, GivesOnADeviceTheRowsOfTheCpu) {
  for (const DebertaCase& one : DebertaCases()) {
    for (const bool masked : {false, true}) {
      ExpectTheRowsOfTheCpu(one.architecture, one.params.dump(),
                            [&](int64_t length) { return Sequence(length, masked); });
    }
  }
}

TEST_F(DebertaTest, IsCloseToFloat32InAllTypes) {
  for (const DebertaCase& one : DebertaCases()) {
    SCOPED_TRACE(one.architecture + one.params.dump());
    const std::string directory = Directory(one.architecture, one.params.dump());
    const auto exact = Load(directory);
    const Item item = Sequence(40, true);
    for (const std::string& type : TypesOfCpu()) {
      EXPECT_GE(SmallestCosine(
                    Compute(*Load(directory, {.dtype = type}), {item})[0].at("last_hidden_state"),
                    Compute(*exact, {item})[0].at("last_hidden_state")),
                0.99)
          << type;
    }
  }
}

// Where pairs of rows are too many to be computed at once, a device takes some queries at a time.
TEST_F(DebertaTest, ComputesLongSequencesOnADeviceAsOnTheCpu) {
  const json params = DebertaParams({{"max_position_embeddings", 3000}, {"num_hidden_layers", 1}});
  const std::string directory = Directory(kDebertaV2, params.dump());
  Item item = Sequence(3000, true);
  const Tensor expected = Compute(*Load(directory), {item})[0].at("last_hidden_state");
  const auto model = LoadOn("simulated:0", directory, "f32");
  EXPECT_LT(LargestDifference(Compute(*model, {item})[0].at("last_hidden_state"), expected), 1e-4);
}

TEST_F(DebertaTest, TakesSequencesOfAnyLengthThatHaveNoTableOfPositions) {
  const auto longest = [&](const json& changed) {
    return Make(kDebertaV2, DebertaParams(changed).dump())->info().signature.limits[0].longest;
  };
  EXPECT_EQ(longest({{"max_seq_length", 900}}), 900);
  EXPECT_EQ(longest({{"position_biased_input", true}}), 42);
}

TEST_F(DebertaTest, RefusesWhatIsNotComputedByName) {
  EXPECT_THAT(ErrorOf({{"pos_att_type", "p2p|c2p"}}),
              HasSubstr("\"pos_att_type\" is \"p2p|c2p\", expected c2p, p2c, or both"));
  EXPECT_THAT(ErrorOf({{"pos_att_type", {"c2p", "c2p"}}}), HasSubstr("expected c2p, p2c, or both"));
  EXPECT_THAT(ErrorOf({{"pos_att_type", {"p2p"}}}), HasSubstr("each of them one of c2p, p2c"));
  for (const int buckets : {1, 82, 1000}) {
    EXPECT_THAT(ErrorOf({{"position_buckets", buckets}}),
                HasSubstr("expected from 2 to less than twice the 42 of max_relative_positions"))
        << buckets;
  }
  EXPECT_THAT(ErrorOf({{"norm_rel_ebd", "batch_norm"}}), HasSubstr("one of none, layer_norm"));
  EXPECT_THAT(ErrorOf({{"conv_kernel_size", 4}}), HasSubstr("an odd number"));
  EXPECT_THAT(ErrorOf({{"conv_kernel_size", 3}, {"conv_groups", 3}}),
              HasSubstr("a divisor of hidden_size"));
  EXPECT_THAT(ErrorOf({{"attention_head_size", 16}}),
              HasSubstr("\"attention_head_size\" is 16, expected hidden_size / num_attention_heads "
                        "= 8"));
  EXPECT_THAT(ErrorOf({{"talking_head", true}}, kDeberta), HasSubstr("\"talking_head\" is true"));
  json classifier = DebertaParams({{"pooler_hidden_size", 8}});
  EXPECT_THAT(InitError("transformers.DebertaV2ForSequenceClassification", classifier.dump()),
              HasSubstr("\"pooler_hidden_size\" is 8, expected hidden_size = 16"));
}

}  // namespace
}  // namespace linserve
