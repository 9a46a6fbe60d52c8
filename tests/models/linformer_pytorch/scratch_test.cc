#include "models/linformer_pytorch/fixture.h"

namespace linserve {
namespace {

struct ScratchCase {
  std::string name;
  std::string arguments;
};

void PrintTo(const ScratchCase& scratch, std::ostream* out) { *out << scratch.name; }

const std::vector<ScratchCase>& ScratchCases() {
  static const std::vector<ScratchCase> cases = {
      {"Layerwise", R"("parameter_sharing": "layerwise")"},
      {"Headwise", R"("parameter_sharing": "headwise", "activation": "relu")"},
      {"None", R"("parameter_sharing": "none", "k_reduce_by_layer": 2)"},
      {"Causal", R"("causal": true, "parameter_sharing": "none")"},
      {"CausalManySlots", R"("causal": true, "dim_k": 2100)"},
      {"Convolution", R"("method": "convolution", "parameter_sharing": "none")"},
      {"ConvolutionOfFewSlots",
       R"("method": "convolution", "parameter_sharing": "kv", "dim_k": 2)"},
      {"NoParams", R"("method": "no_params", "parameter_sharing": "headwise")"},
      {"Full", R"("full_attention": true)"},
      {"FullCausal", R"("full_attention": true, "causal": true)"},
      {"Decoder", R"("decoder_mode": true, "causal": true)"},
      {"Intermediate", R"("ff_intermediate": 10, "parameter_sharing": "kv")"},
  };
  return cases;
}

class LptScratchTest : public ModelFixture, public testing::WithParamInterface<ScratchCase> {
 protected:
  // Sequences far longer than the slices, and others shorter than one.
  std::vector<Item> Items() {
    std::vector<Item> items;
    for (const int64_t length : {700, 2500, 3, 1025, 2}) {
      Item item;
      item.inputs["x"] = RandomFloats({length, 8});
      if (GetParam().arguments.find("decoder_mode") != std::string::npos) {
        item.inputs["embeddings"] = RandomFloats({length, 8});
      }
      item.inputs["input_mask"] = RandomMask(length);
      item.inputs["embeddings_mask"] = RandomMask(length);
      items.push_back(std::move(item));
    }
    return items;
  }

  std::string ParamsOf(const std::string& level) const {
    const std::string& more = GetParam().arguments;
    const std::string slots = more.find("\"dim_k\"") == std::string::npos ? R"("dim_k": 10, )" : "";
    return "{" + slots + R"("input_size": 2500, "channels": 8, "nhead": 2, "dim_ff": 12,
                            "depth": 2, "checkpoint_level": ")" +
           level + "\", " + more + "}";
  }
};

TEST_P(LptScratchTest, EveryCheckpointLevelComputesTheSame) {
  const std::vector<Item> items = Items();
  const auto expected = Compute(*Load(Init(kLptStack, ParamsOf("C0"))), items);
  for (const char* level : {"C1", "C2"}) {
    const auto model = Load(Init(kLptStack, ParamsOf(level)));
    for (Padding padding : {Padding::kPacked, Padding::kFixed}) {
      const auto results = Compute(*model, items, padding);
      for (size_t i = 0; i < items.size(); ++i) {
        EXPECT_LT(LargestDifference(results[i], expected[i]), kTolerance)
            << level << " " << Name(padding);
      }
    }
  }
}

TEST_P(LptScratchTest, Bfloat16StaysCloseToFloat32) {
  SKIP_WITHOUT_TYPE("bf16");
  ModelLoadOptions rounded;
  rounded.dtype = "bf16";
  const std::vector<Item> items = Items();
  for (const char* level : {"C0", "C2"}) {
    const std::string directory = Init(kLptStack, ParamsOf(level));
    const auto expected = Compute(*Load(directory), items);
    const auto results = Compute(*Load(directory, rounded), items);
    for (size_t i = 0; i < items.size(); ++i) {
      EXPECT_GE(SmallestCosine(expected[i].at("y"), results[i].at("y")), 0.999) << level;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, LptScratchTest, testing::ValuesIn(ScratchCases()),
                         [](const auto& scratch) { return scratch.param.name; });

class LptStepTest : public ModelFixture {};

TEST_F(LptStepTest, TakesOneLayerAStepAndOfAnEncoderDecoderBoth) {
  const auto steps = [&](const std::string& architecture, const std::string& params,
                         const Item& item) {
    const auto model = Load(Init(architecture, params));
    const Padder padder(model->info().signature, Padding::kPacked);
    auto forward = model->Start(padder.Pad({&item}));
    int count = 1;
    while (!*(*forward)->Advance()) ++count;
    return count;
  };
  EXPECT_EQ(
      steps(kLptStack, R"({"input_size": 9, "channels": 8, "dim_k": 3, "depth": 5})", Floats(9, 8)),
      5);
  EXPECT_EQ(steps(kLptEncDec, R"({"enc_num_tokens": 9, "dec_num_tokens": 9, "enc_input_size": 9,
                                  "dec_input_size": 9, "enc_channels": 8, "dec_channels": 8,
                                  "enc_depth": 2, "dec_depth": 3})",
                  Tokens(9, 9)),
            5);
}

TEST_F(LptStepTest, LeavesItsInputsAsTheyWere) {
  for (const char* more : {"", R"("parameter_sharing": "none")", R"("full_attention": true)"}) {
    const auto model =
        Make(kLptStack, LptArguments(R"("input_size": 9, "channels": 8, "dim_k": 3)", more));
    Item item = Floats(7, 8);
    item.inputs["input_mask"] = RandomMask(7);
    const Tensor before = *Convert(*Convert(item.inputs.at("x"), DType::kF64), DType::kF32);
    const TensorMap first = Compute(*model, {item})[0];
    EXPECT_EQ(LargestDifference(item.inputs.at("x"), before), 0);
    EXPECT_EQ(LargestDifference(Compute(*model, {item})[0], first), 0);
  }
}

TEST_F(LptStepTest, ManyShortSequencesMeetMoreSlotsThanAreHeldAtOnce) {
  // A convolution is not computed by blocks, in which slots are of one sequence.
  const auto model = Make(kLptStack, R"({"input_size": 4000, "channels": 64, "dim_k": 4000,
                                         "depth": 1, "dim_ff": 8, "method": "convolution"})");
  std::vector<Item> items;
  for (int i = 0; i < 200; ++i) items.push_back(Floats(Any(1, 2), 64));
  const auto together = Compute(*model, items);
  for (const size_t i : {0, 64, 65, 199}) {
    EXPECT_LT(LargestDifference(together[i], Compute(*model, {items[i]})[0]), kTolerance) << i;
  }
}

}  // namespace
}  // namespace linserve
