#include "models/performer_pytorch/fixture.h"

namespace linserve {
namespace {

// Is a model by the arguments that it has besides those of all cases.
struct PerformerCase {
  std::string name;
  bool language_model;
  std::string arguments;

  bool Contains(const std::string& text) const { return arguments.find(text) != std::string::npos; }
};

void PrintTo(const PerformerCase& performer, std::ostream* out) { *out << performer.name; }

const std::vector<PerformerCase>& PerformerCases() {
  static const std::vector<PerformerCase> cases = {
      {"Plain", false, ""},
      {"Causal", false, R"("causal": true, "nb_features": 7, "reversible": true)"},
      {"Generalized", false, R"("generalized_attention": true, "use_scalenorm": true)"},
      {"GeneralizedCausal", false,
       R"("generalized_attention": true, "causal": true, "kernel_fn": "gelu", "use_rezero": true)"},
      {"NoProjection", false, R"("no_projection": true, "ff_glu": true)"},
      {"NoProjectionCausal", false, R"("no_projection": true, "causal": true, "dim_head": 5)"},
      {"Local", false, R"("local_attn_heads": [1, 3], "shift_tokens": true)"},
      {"LocalCausal", false, R"("local_attn_heads": 2, "causal": true, "shift_tokens": true)"},
      {"Context", false, R"("cross_attend": true, "reversible": true)"},
      {"ContextGeneralized", false,
       R"("cross_attend": true, "generalized_attention": true, "causal": true)"},
      {"LanguageModel", true, ""},
      {"Axial", true,
       R"("rotary_position_emb": false, "axial_position_emb": true,
          "axial_position_shape": [2, 3, 7], "local_attn_heads": 1)"},
      {"Learned", true, R"("rotary_position_emb": false, "tie_embed": true, "causal": true)"},
      {"ScBert", true, R"("g2v_position_emb": true, "local_attn_heads": 1)"},
      {"ScBertCausal", true, R"("g2v_position_emb": false, "causal": true)"},
      {"Decoder", true, R"("cross_attend": true, "causal": true, "no_projection": true)"},
  };
  return cases;
}

class PerformerPaddingTest : public ModelFixture,
                             public testing::WithParamInterface<PerformerCase> {
 protected:
  std::unique_ptr<Model> MakeCase() {
    const PerformerCase& performer = GetParam();
    return performer.language_model
               ? Make(kPerformerLanguageModel, PerformerModel(performer.arguments))
               : Make(kPerformer, PerformerStack(performer.arguments));
  }

  Item RandomItem(int64_t length, bool masked) {
    Item item = GetParam().language_model ? Tokens(length, 30) : Floats(length, 12);
    item.options.outputs = {"y"};
    if (masked) item.inputs["mask"] = RandomMask(length);
    if (!GetParam().Contains("cross_attend")) return item;
    const int64_t context = Any(1, 20);
    item.inputs["context"] = RandomFloats({context, 12});
    if (masked) item.inputs["context_mask"] = RandomMask(context);
    return item;
  }
};

TEST_P(PerformerPaddingTest, ASequenceComesOutAsIfItWereAloneInEveryMode) {
  const auto model = MakeCase();
  ASSERT_NE(model, nullptr);
  ExpectTheSameInMixes(*model, 20,
                       [&](int64_t length, bool masked) { return RandomItem(length, masked); });
}

TEST_P(PerformerPaddingTest, AllMaskedGivesFiniteRows) {
  const auto model = MakeCase();
  Item item = RandomItem(11, /*masked=*/false);
  item.inputs["mask"] = MaskOf(11, 0, 0);
  const TensorMap result = Compute(*model, {item})[0];
  EXPECT_EQ(LargestDifference(result, result), 0);  // NaN differs from itself
}

INSTANTIATE_TEST_SUITE_P(All, PerformerPaddingTest, testing::ValuesIn(PerformerCases()),
                         [](const auto& performer) { return performer.param.name; });

}  // namespace
}  // namespace linserve
