// JinaBERT: scores that fall with distances, and a gate in the feed-forward.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "models/forward/device_fixture.h"

namespace linserve {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr const char* kJinaBert = "jina_bert.JinaBertModel";
constexpr int64_t kJinaWords = 30;

json JinaParams(const json& changed) {
  json params = json::parse(R"({
    "vocab_size": 30, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3,
    "intermediate_size": 24, "max_position_embeddings": 42, "position_embedding_type": "alibi"})");
  params.update(changed);
  return params;
}

class JinaBertTest : public DeviceModelTest {
 protected:
  JinaBertTest()
      : cases_({{{"feed_forward_type", "geglu"}},
                {{"feed_forward_type", "reglu"}, {"qk_norm", true}},
                {{"num_attention_heads", 4}}}) {}

  Item Sequence(int64_t length, bool masked) {
    Item item = Tokens(length, kJinaWords);
    if (masked) item.inputs["attention_mask"] = RandomMask(length);
    return item;
  }

  const std::vector<json> cases_;
};

TEST_F(JinaBertTest, GivesTheSameRowsInEveryMode) {
  for (const json& changed : cases_) {
    SCOPED_TRACE(changed.dump());
    const auto model = Make(kJinaBert, JinaParams(changed).dump());
    ExpectTheSameInMixes(*model, 8,
                         [&](int64_t length, bool masked) { return Sequence(length, masked); });
  }
}

TEST_F(JinaBertTest, GivesOnADeviceTheRowsOfTheCpu) {
  for (const json& changed : cases_) {
    for (const bool masked : {false, true}) {
      ExpectTheRowsOfTheCpu(kJinaBert, JinaParams(changed).dump(),
                            [&](int64_t length) { return Sequence(length, masked); });
    }
  }
}

TEST_F(JinaBertTest, IsCloseToFloat32InAllTypes) {
  for (const json& changed : cases_) {
    SCOPED_TRACE(changed.dump());
    const std::string directory = Directory(kJinaBert, JinaParams(changed).dump());
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

TEST_F(JinaBertTest, RefusesWhatIsNotComputedByName) {
  const auto error = [](const json& changed) {
    return InitError(kJinaBert, JinaParams(changed).dump());
  };
  EXPECT_THAT(error({{"feed_forward_type", "swiglu"}}),
              HasSubstr("\"feed_forward_type\" is \"swiglu\", expected one of geglu, reglu, "
                        "original"));
  EXPECT_THAT(error({{"feed_forward_type", "original"}, {"qk_norm", true}}),
              HasSubstr("\"feed_forward_type\" is \"original\", expected one of geglu, reglu"));
  EXPECT_THAT(error({{"position_embedding_type", "absolute"}}),
              HasSubstr("\"position_embedding_type\" is \"absolute\", expected one of alibi"));
  EXPECT_THAT(error({{"is_decoder", true}}), HasSubstr("only encoders are computed"));
}

}  // namespace
}  // namespace linserve
