#include "models/linear_attention_transformer/fixture.h"

namespace linserve {
namespace {

constexpr int64_t kDim = 12;

// A model by the arguments that it has besides those of all cases.
struct LatCase {
  std::string name;
  bool language_model;
  std::string arguments;
  std::string wrapper = "null";
  int mixes = 20;

  bool Contains(const std::string& text) const { return arguments.find(text) != std::string::npos; }
};

void PrintTo(const LatCase& lat, std::ostream* out) { *out << lat.name; }

const std::vector<LatCase>& LatCases() {
  static const std::vector<LatCase> cases = {
      {"Plain", false, ""},
      {"Reversible", false, R"("reversible": true, "dim_head": 5)"},
      {"Causal", false, R"("causal": true)"},
      {"BlindSpot", false, R"("causal": true, "blindspot_size": 6)"},
      {"Local", false, R"("n_local_attn_heads": [1, 3])"},
      {"LocalCausal", false, R"("n_local_attn_heads": 2, "causal": true, "blindspot_size": 3)"},
      {"Axial", false, R"("attend_axially": true, "ff_glu": true)"},
      {"AxialCausal", false, R"("attend_axially": true, "causal": true, "reversible": true)"},
      {"Shift", false, R"("shift_tokens": true, "n_local_attn_heads": 1)"},
      {"ShiftCausal", false, R"("shift_tokens": true, "causal": true, "ff_chunks": 2)"},
      {"Linformer", false, R"("linformer_settings": {"k": 50})"},
      {"Context", false, R"("receives_context": true, "ff_glu": true, "causal": true)"},
      {"ContextLinformer", false,
       R"("receives_context": true, "context_linformer_settings": {"seq_len": 20, "k": 7},
          "linformer_settings": {"k": 6}, "reversible": true)"},
      {"Memory", false, R"("pkm_layers": 2, "shift_tokens": true)", "null", 5},
      {"PadRight", false, R"("shift_tokens": true, "n_local_attn_heads": 1)", kPadRight},
      {"PadRightLinformer", false, R"("linformer_settings": {"k": 6}, "n_local_attn_heads": 1)",
       kPadRight},
      {"PadLeftCausal", false, R"("causal": true, "blindspot_size": 6, "n_local_attn_heads": 1)",
       kPadLeft},
      {"LanguageModel", true, ""},
      {"Learned", true, R"("use_axial_pos_emb": false, "emb_dim": 8)"},
      {"Rotary", true, R"("use_rotary_emb": true, "causal": true, "n_local_attn_heads": 1)"},
      {"Decoder", true,
       R"("causal": true, "reversible": true, "receives_context": true, "n_local_attn_heads": 2,
          "use_rotary_emb": true)"},
      {"Embeddings", true, R"("return_embeddings": true, "attend_axially": true)"},
      {"LanguageModelPadLeft", true, R"("n_local_attn_heads": 1, "shift_tokens": true)", kPadLeft},
      {"RotaryPadRight", true, R"("use_rotary_emb": true, "n_local_attn_heads": 2)", kPadRight},
  };
  return cases;
}

class LatPaddingTest : public ModelFixture, public testing::WithParamInterface<LatCase> {
 protected:
  std::unique_ptr<Model> MakeCase() {
    const LatCase& lat = GetParam();
    std::string params = R"({"dim": 12, "depth": 2, "max_seq_len": 40, "heads": 3,
                             "local_attn_window_size": 8)";
    if (lat.language_model) params += R"(, "num_tokens": 30, "dim_head": 4)";
    if (!lat.arguments.empty()) params += ", " + lat.arguments;
    return Make(lat.language_model ? kLatLanguageModel : kLatStack, params + "}", lat.wrapper);
  }

  Item RandomItem(int64_t length, bool masked) {
    const LatCase& lat = GetParam();
    Item item = lat.language_model ? Tokens(length, kVocabulary) : Floats(length, kDim);
    item.options.outputs = {"y"};
    if (masked) item.inputs["input_mask"] = RandomMask(length);
    if (!lat.Contains("receives_context")) return item;
    const int64_t context = Any(1, 20);
    item.inputs["context"] = RandomFloats({context, kDim});
    if (masked) item.inputs["context_mask"] = RandomMask(context);
    return item;
  }
};

TEST_P(LatPaddingTest, ASequenceComesOutAsIfItWereAloneInEveryMode) {
  const auto model = MakeCase();
  ASSERT_NE(model, nullptr);
  ExpectTheSameInMixes(*model, GetParam().mixes,
                       [&](int64_t length, bool masked) { return RandomItem(length, masked); });
}

INSTANTIATE_TEST_SUITE_P(All, LatPaddingTest, testing::ValuesIn(LatCases()),
                         [](const auto& lat) { return lat.param.name; });

}  // namespace
}  // namespace linserve
