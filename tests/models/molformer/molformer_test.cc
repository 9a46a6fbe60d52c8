#include "models/molformer/molformer.h"

#include <gmock/gmock.h>

#include "core/files/safetensors.h"
#include "models/model_fixture.h"

namespace linserve {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string MolformerSizes(const std::string& more = "") {
  return R"({"vocab_size": 30, "hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3,
             "intermediate_size": 20, "num_random_features": 9)" +
         more + "}";
}

class Molformer : public ModelFixture {
 protected:
  Item Molecule(int64_t length, bool masked) {
    Item item = Tokens(length, 30);
    if (masked) item.inputs["attention_mask"] = RandomMask(length);
    item.options.outputs = {"last_hidden_state", "pooler_output"};
    return item;
  }

  std::vector<std::string> Warnings(const std::string& more) {
    const auto report = InspectModel(Init("molformer.MolformerModel", MolformerSizes(more)));
    EXPECT_TRUE(report.ok()) << report.status();
    return report.ok() ? report->warnings : std::vector<std::string>();
  }
};

TEST_F(Molformer, GivesTheSameRowsAloneAndInEveryPadding) {
  for (const std::string more : {"", R"(, "feature_map_kernel": "gelu", "hidden_act": "tanh")",
                                 R"(, "num_attention_heads": 1, "num_random_features": 40)"}) {
    SCOPED_TRACE(more);
    const auto model = Make("molformer.MolformerModel", MolformerSizes(more));
    ExpectTheSameInMixes(*model, 8,
                         [&](int64_t length, bool masked) { return Molecule(length, masked); });
    std::vector<Item> items;
    for (const int64_t length : {300, 3, 128, 129, 40}) items.push_back(Molecule(length, false));
    ExpectTheSameAloneAndTogether(*model, items);
  }
}

TEST_F(Molformer, PoolsTheVisibleRows) {
  const auto model = Make("molformer.MolformerModel", MolformerSizes());
  Item item = Molecule(9, false);
  item.inputs["attention_mask"] = MaskOf(9, 2, 6);
  const TensorMap results = Compute(*model, {item})[0];
  const Tensor& rows = results.at("last_hidden_state");
  for (int64_t column = 0; column < 12; ++column) {
    double sum = 0;
    for (int64_t row = 2; row < 6; ++row) sum += rows.data<float>()[row * 12 + column];
    EXPECT_NEAR(results.at("pooler_output").data<float>()[column], sum / 4, 1e-5);
  }
}

// Weights that may nearly cancel out would magnify what is rounded in queries and keys.
TEST_F(Molformer, OfFewFeaturesIsCloseToFloat32InAllTypes) {
  const std::string directory =
      Init("molformer.MolformerModel",
           R"({"vocab_size": 30, "hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 48,
               "num_attention_heads": 4, "num_random_features": 3})");
  const auto exact = Load(directory);
  for (const std::string& type : TypesOfCpu()) {
    const auto rounded = Load(directory, {.dtype = type});
    for (int i = 0; i < 20; ++i) {
      const Item item = Tokens(24, 30);
      EXPECT_GE(SmallestCosine(Compute(*exact, {item})[0].at("last_hidden_state"),
                               Compute(*rounded, {item})[0].at("last_hidden_state")),
                type == "int8" ? 0.99 : 0.999)
          << type;
    }
  }
}

TEST_F(Molformer, WarnsOfFeaturesThatItsPackageDrawsAnew) {
  EXPECT_THAT(Warnings(""), ElementsAre(HasSubstr("deterministic_eval is false")));
  EXPECT_THAT(Warnings(R"(, "deterministic_eval": true)"), IsEmpty());
}

TEST_F(Molformer, RefusesWhatIsNotComputedByName) {
  const auto error = [](const std::string& more) {
    return InitError("molformer.MolformerModel", MolformerSizes(more));
  };
  EXPECT_THAT(error(R"(, "hidden_size": 15)"), HasSubstr("halves of each head"));
  EXPECT_THAT(error(R"(, "feature_map_kernel": "selu")"), HasSubstr("expected one of gelu"));
  EXPECT_THAT(error(R"(, "is_decoder": true)"), HasSubstr("only encoders"));
}

TEST_F(Molformer, IsServedOutOfAFolderForAnotherTask) {
  const std::string folder = Directory("molformer.MolformerModel", MolformerSizes());
  const Item item = Molecule(11, false);
  const TensorMap expected = Compute(*Load(folder), {item})[0];
  TensorMap tensors{{"lm_head.decoder.weight", RandomFloats({30, 12})},
                    {"lm_head.transform.LayerNorm.bias", RandomFloats({12})}};
  const auto file = ReadSafetensors(folder + "/model.safetensors");
  ASSERT_TRUE(file.ok()) << file.status();
  for (const auto& [name, tensor] : file->tensors) tensors["molformer." + name] = tensor;
  ASSERT_TRUE(WriteSafetensors(folder + "/model.safetensors", tensors).ok());
  Write(folder, "config.json",
        MolformerSizes(R"(, "model_type": "molformer", "architectures": ["MolformerForMaskedLM"],
                          "auto_map": {"AutoModel": "modeling_molformer.MolformerModel"})"));
  EXPECT_EQ(LargestDifference(Compute(*Load(folder), {item})[0], expected), 0);
}

}  // namespace
}  // namespace linserve
