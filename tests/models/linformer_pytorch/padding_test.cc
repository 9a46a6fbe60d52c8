#include "models/linformer_pytorch/fixture.h"

namespace linserve {
namespace {

constexpr int64_t kChannels = 12;

// A model by the arguments that it has besides those of all cases.
struct LptCase {
  std::string name;
  std::string architecture;
  std::string arguments;
  std::string wrapper = "null";

  bool Contains(const std::string& text) const { return arguments.find(text) != std::string::npos; }
  bool decoder() const { return Contains(R"("decoder_mode": true)"); }
};

void PrintTo(const LptCase& lpt, std::ostream* out) { *out << lpt.name; }

const std::vector<LptCase>& LptCases() {
  static const std::vector<LptCase> cases = {
      {"Attention", kLptAttention, R"("parameter_sharing": "none", "causal": true)"},
      {"AttentionDecoder", kLptAttention,
       R"("decoder_mode": true, "method": "no_params", "parameter_sharing": "headwise")"},
      {"AttentionFull", kLptAttention, R"("full_attention": true, "parameter_sharing": "kv")"},
      {"None", kLptStack, R"("parameter_sharing": "none", "k_reduce_by_layer": 3)"},
      {"Headwise", kLptStack, R"("parameter_sharing": "headwise", "k_reduce_by_layer": 5)"},
      {"Kv", kLptStack, R"("parameter_sharing": "kv", "activation": "relu", "dim_d": 5)"},
      {"Layerwise", kLptStack, R"("dim_k": 50, "w_o_intermediate_dim": 6)"},
      {"CausalNone", kLptStack, R"("causal": true, "parameter_sharing": "none")"},
      {"CausalLayerwise", kLptStack, R"("causal": true, "k_reduce_by_layer": 2)"},
      {"Full", kLptStack, R"("full_attention": true, "parameter_sharing": "none")"},
      {"FullCausal", kLptStack, R"("full_attention": true, "causal": true)"},
      {"Convolution", kLptStack, R"("method": "convolution", "parameter_sharing": "headwise")"},
      {"ConvolutionFloor", kLptStack,
       R"("method": "convolution", "parameter_sharing": "none", "dim_k": 7)"},
      {"ConvolutionCausal", kLptStack, R"("method": "convolution", "causal": true)"},
      {"NoParams", kLptStack, R"("method": "no_params", "parameter_sharing": "none")"},
      {"NoParamsLayerwise", kLptStack, R"("method": "no_params")"},
      {"Intermediate", kLptStack, R"("ff_intermediate": 10, "parameter_sharing": "kv")"},
      {"NoFeedForward", kLptStack, R"("include_ff": false)"},
      {"Decoder", kLptStack, R"("decoder_mode": true, "causal": true)"},
      {"DecoderFull", kLptStack, R"("decoder_mode": true, "full_attention": true)"},
      {"Padder", kLptStack, "", kLptPadder},
      {"PadderDecoder", kLptStack, R"("decoder_mode": true, "causal": true)", kLptPadder},
      {"PadderDecoderConvolution", kLptStack,
       R"("decoder_mode": true, "method": "convolution", "parameter_sharing": "none")", kLptPadder},
      {"PadderDecoderFull", kLptStack, R"("decoder_mode": true, "full_attention": true)",
       kLptPadder},
      {"C1", kLptStack, R"("checkpoint_level": "C1", "parameter_sharing": "headwise")"},
      {"C2", kLptStack, R"("checkpoint_level": "C2", "parameter_sharing": "none")"},
      {"C2Full", kLptStack, R"("checkpoint_level": "C2", "full_attention": true)"},
      {"LanguageModel", kLptLanguageModel, R"("num_tokens": 30)"},
      {"LanguageModelWidths", kLptLanguageModel,
       R"("num_tokens": 30, "emb_dim": 8, "return_emb": true)"},
      {"LanguageModelDecoder", kLptLanguageModel,
       R"("num_tokens": 30, "decoder_mode": true, "causal": true, "checkpoint_level": "C2")",
       kLptPadder},
      {"EncDec", kLptEncDec, ""},
      {"EncDecMixed", kLptEncDec,
       R"("enc_parameter_sharing": "none", "enc_method": "convolution", "dec_method": "no_params",
          "dec_emb_dim": 6, "dec_full_attention": true)"},
  };
  return cases;
}

std::string BaseOf(const LptCase& lpt) {
  if (lpt.architecture == kLptEncDec) {
    return R"("enc_num_tokens": 30, "dec_num_tokens": 25, "enc_input_size": 40,
              "dec_input_size": 40, "enc_channels": 12, "dec_channels": 12, "enc_dim_k": 8,
              "dec_dim_k": 5, "enc_dim_ff": 16, "dec_dim_ff": 20, "enc_nhead": 3)";
  }
  std::string base = R"("input_size": 40, "channels": 12, "nhead": 3)";
  if (!lpt.Contains("\"dim_k\"")) base += R"(, "dim_k": 8)";
  if (lpt.architecture == kLptAttention) return base + R"(, "dim": 5)";
  return base + R"(, "dim_ff": 16, "depth": 3)";
}

class LptPaddingTest : public ModelFixture, public testing::WithParamInterface<LptCase> {
 protected:
  Item RandomItem(int64_t length, bool masked) {
    const LptCase& lpt = GetParam();
    const bool padder = lpt.wrapper != "null";
    const auto other_length = [&] { return padder ? Any(1, kLongestInput) : length; };
    Item item;
    item.options.outputs = {"y"};
    if (lpt.architecture == kLptEncDec) {
      item.inputs["x"] = Ids(length, 25);
      if (masked) item.inputs["y"] = Ids(length, 25);
    } else if (lpt.architecture == kLptLanguageModel) {
      item.inputs["x"] = Ids(length, 30);
      item.options.outputs.emplace_back("embeddings");
    } else {
      item.inputs["x"] = RandomFloats({length, kChannels});
    }
    if (lpt.decoder()) item.inputs["embeddings"] = RandomFloats({other_length(), kChannels});
    if (!masked) return item;
    item.inputs["input_mask"] = RandomMask(other_length());
    item.inputs["embeddings_mask"] = RandomMask(other_length());
    return item;
  }
};

TEST_P(LptPaddingTest, ASequenceComesOutAsIfItWereAloneInEveryMode) {
  const auto model =
      Make(GetParam().architecture, LptArguments(BaseOf(GetParam()), GetParam().arguments),
           GetParam().wrapper);
  ASSERT_NE(model, nullptr);
  ExpectTheSameInMixes(*model, 20,
                       [&](int64_t length, bool masked) { return RandomItem(length, masked); });
}

INSTANTIATE_TEST_SUITE_P(All, LptPaddingTest, testing::ValuesIn(LptCases()),
                         [](const auto& lpt) { return lpt.param.name; });

}  // namespace
}  // namespace linserve
