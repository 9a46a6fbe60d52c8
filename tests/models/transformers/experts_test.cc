// NomicBert with experts. The golden cases hold its numbers against its authors' formulas.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "models/forward/device_fixture.h"

namespace linserve {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

json SizesWithExperts() {
  return {{"vocab_size", 30},      {"n_embd", 24},
          {"n_head", 2},           {"n_inner", 40},
          {"n_layer", 4},          {"n_positions", 300},
          {"type_vocab_size", 1},  {"activation_function", "gelu"},
          {"qkv_proj_bias", true}, {"mlp_fc1_bias", true},
          {"mlp_fc2_bias", true},  {"num_experts", 5},
          {"moe_top_k", 2},        {"moe_every_n_layers", 2}};
}

class ExpertsTest : public DeviceModelTest {
 protected:
  static constexpr const char* kArchitecture = "transformers.NomicBertModel";

  Item Sequence(int64_t length, bool masked) {
    Item item = Tokens(length, 30);
    if (masked) item.inputs["attention_mask"] = RandomMask(length);
    if (masked) item.options.outputs = {"last_hidden_state"};
    return item;
  }
};

TEST_F(ExpertsTest, GivesASequenceWhatItGivesItAlone) {
  const auto model = Make(kArchitecture, SizesWithExperts().dump());
  ExpectTheSameInMixes(*model, 6,
                       [&](int64_t length, bool masked) { return Sequence(length, masked); });
}

TEST_F(ExpertsTest, GivesOnADeviceWhatItGivesOnTheCpu) {
  ExpectTheRowsOfTheCpu(kArchitecture, SizesWithExperts().dump(),
                        [&](int64_t length) { return Sequence(length, false); });
  const auto model =
      LoadOn("simulated:0", Directory(kArchitecture, SizesWithExperts().dump()), "bf16");
  const Item item = Sequence(9, false);
  Compute(*model, {item});
  ExpectNoWaiting(*model, {&item});
}

TEST_F(ExpertsTest, IsCloseToFloat32InAllTypes) {
  const std::string directory = Directory(kArchitecture, SizesWithExperts().dump());
  const auto exact = Load(directory);
  for (const std::string& type : TypesOfCpu()) {
    const auto rounded = Load(directory, {.dtype = type});
    Item item = Sequence(200, false);
    item.options.pooling = Pooling::kMean;
    EXPECT_GE(SmallestCosine(Compute(*exact, {item})[0].at("last_hidden_state"),
                             Compute(*rounded, {item})[0].at("last_hidden_state")),
              0.99)
        << type;
  }
}

TEST_F(ExpertsTest, HasOneFeedForwardWhereNoLayerHasMore) {
  json params = SizesWithExperts();
  params["n_positions"] = 2;  // so that attention is little of it
  params.erase("moe_every_n_layers");
  const double without = InspectModel(Directory(kArchitecture, params.dump()))->flops_per_token;
  params["moe_every_n_layers"] = 2;
  params["moe_top_k"] = 1;
  const double one = InspectModel(Directory(kArchitecture, params.dump()))->flops_per_token;
  EXPECT_LT(one, 1.05 * without);  // it has the router's product besides
  params["moe_top_k"] = 5;
  EXPECT_GT(InspectModel(Directory(kArchitecture, params.dump()))->flops_per_token, 1.5 * without);
}

TEST_F(ExpertsTest, RefusesByNameWhatIsNotComputed) {
  const auto error = [](const char* key, const json& value) {
    json params = SizesWithExperts();
    params[key] = value;
    return InitError(kArchitecture, params.dump());
  };
  EXPECT_THAT(error("moe_top_k", 6), HasSubstr("expected at most num_experts = 5"));
  EXPECT_THAT(error("num_experts", 100000), HasSubstr("expected 1024 at most"));
  EXPECT_THAT(error("num_shared_experts", 1), HasSubstr("\"num_shared_experts\" is 1, expected 0"));
  EXPECT_THAT(error("expert_choice_router", true), HasSubstr("\"expert_choice_router\" is true"));
  EXPECT_THAT(error("moe_normalize_expert_weights", true),
              HasSubstr("\"moe_normalize_expert_weights\" is true"));
  EXPECT_THAT(error("moe_impl", "contrastors"), HasSubstr("\"moe_impl\" is \"contrastors\""));
  EXPECT_THAT(error("ffn_div", 2), HasSubstr("\"ffn_div\" is 2"));
  EXPECT_THAT(error("activation_function", "swiglu"), HasSubstr("\"qkv_proj_bias\" is true"));
  EXPECT_THAT(error("moe_every_n_layers", -1), HasSubstr("\"moe_every_n_layers\" is -1"));
}

}  // namespace
}  // namespace linserve
