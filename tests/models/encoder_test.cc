#include "models/encoder.h"

#include <gtest/gtest.h>

#include <cstring>

#include "core/safetensors.h"
#include "models/encoder_reference.h"
#include "models/model_fixture.h"

namespace linserve {
namespace {

constexpr const char* kAttentions[] = {"softmax", "efficient", "elu", "taylor", "linformer"};

// The arguments that tests have in common; `more` begins with a comma.
std::string AttentionParams(const std::string& attention, const std::string& more = "") {
  return R"({"attention": ")" + attention +
         R"(", "dim": 16, "depth": 2, "heads": 4, "seq_len": 40, "k": 8, "max_seq_len": 40)" +
         more + "}";
}

class EncoderTest : public ModelFixture {
 protected:
  // A model whose biases and norms are random, too.
  std::string Init(const std::string& params) {
    const std::string directory = ModelFixture::Init("linserve.Encoder", params);
    const std::string path = directory + "/model.safetensors";
    TensorMap tensors = ReadSafetensors(path)->tensors;
    for (auto& [name, tensor] : tensors) {
      if (tensor.shape().size() == 1) tensor = RandomFloats(tensor.shape());
    }
    EXPECT_TRUE(WriteSafetensors(path, tensors, {}).ok());
    return directory;
  }

  // true with probability 0.7.
  Tensor RandomMask(int64_t length) {
    auto [mask, bytes] = Tensor::Allocate(DType::kBool, {length});
    std::bernoulli_distribution visible(0.7);
    for (int64_t i = 0; i < length; ++i) bytes[i] = visible(random_) ? std::byte{1} : std::byte{0};
    return mask;
  }

  Item Random(int64_t length, bool tokens, bool masked) {
    Item item = tokens ? Tokens(length, 30) : Floats(length, 16);
    if (masked) item.inputs["input_mask"] = RandomMask(length);
    return item;
  }

  void ExpectReference(const std::string& params,
                       const std::vector<int64_t>& lengths = {1, 2, 7, 40}) {
    SCOPED_TRACE(params);
    const std::string directory = Init(params);
    auto model = Load(directory);
    ASSERT_NE(model, nullptr);
    const EncoderReference reference(directory);
    const bool tokens = params.find("num_tokens") != std::string::npos;
    for (bool masked : {false, true}) {
      for (int64_t length : lengths) {
        const Item item = Random(length, tokens, masked);
        EXPECT_LT(LargestDifference(Compute(*model, {item})[0].at("y"), reference.Compute(item)),
                  kTolerance)
            << length << (masked ? " masked" : "");
      }
    }
  }
};

TEST_F(EncoderTest, EqualsItsFormulasInFloat64) {
  for (const char* attention : kAttentions) {
    ExpectReference(AttentionParams(attention));
    ExpectReference(
        AttentionParams(attention, R"(, "num_tokens": 30, "dim_head": 6, "ff_mult": 2)"));
    for (const char* positions : {"learned", "sinusoidal", "rotary"}) {
      const std::string more = R"(, "num_tokens": 30, "positions": ")" + std::string(positions);
      ExpectReference(AttentionParams(attention, more + "\""));
    }
  }
}

TEST_F(EncoderTest, EqualsItsFormulasWhenCausal) {
  for (const char* attention : kAttentions) {
    ExpectReference(AttentionParams(attention, R"(, "causal": true)"));
    ExpectReference(
        AttentionParams(attention, R"(, "causal": true, "positions": "rotary", "heads": 1)"));
  }
}

TEST_F(EncoderTest, EqualsItsFormulasWithoutTheDenominatorOfElu) {
  ExpectReference(AttentionParams("elu", R"(, "normalize": false)"));
  ExpectReference(AttentionParams("elu", R"(, "normalize": false, "causal": true)"));
}

TEST_F(EncoderTest, EqualsItsFormulasForSequencesThatAreComputedInParts) {
  for (const char* attention : {"efficient", "elu", "taylor"}) {
    for (const char* causal : {"false", "true"}) {
      ExpectReference(R"({"attention": ")" + std::string(attention) + R"(", "causal": )" + causal +
                          R"(, "dim": 16, "depth": 2, "heads": 2, "positions": "rotary"})",
                      {1030});
    }
  }
}

// Every attention with every kind of positions, causal and not.
std::vector<std::string> Variants() {
  std::vector<std::string> variants;
  for (const char* attention : kAttentions) {
    for (const char* positions : {"none", "learned", "sinusoidal", "rotary"}) {
      for (const char* causal : {"false", "true"}) {
        variants.push_back(AttentionParams(
            attention,
            R"(, "positions": ")" + std::string(positions) + R"(", "causal": )" + causal));
      }
    }
  }
  return variants;
}

TEST_F(EncoderTest, GivesTheSameRowsAloneAndInEveryPadding) {
  std::uniform_int_distribution<size_t> count(1, 9);
  std::uniform_int_distribution<int64_t> any(1, kLongestInput);
  for (const std::string& params : Variants()) {
    SCOPED_TRACE(params);
    auto model = Load(Init(params));
    for (int round = 0; round < 12; ++round) {
      std::vector<int64_t> lengths(count(random_));
      for (int64_t& length : lengths) length = any(random_);
      if (round == 0) lengths = {1, kLongestInput, 1};
      if (round == 1) lengths.assign(20, 1);
      std::vector<Item> items;
      for (int64_t length : lengths) items.push_back(Random(length, false, round % 2 == 1));
      ExpectTheSameAloneAndTogether(*model, items);
    }
  }
}

TEST_F(EncoderTest, PaddingRowsOfTokensTakePartInNothing) {
  for (const char* attention : kAttentions) {
    auto model =
        Load(Init(AttentionParams(attention, R"(, "num_tokens": 30, "positions": "learned")")));
    std::vector<Item> items;
    for (int64_t length : {3, 17, 40, 1, 17}) items.push_back(Tokens(length, 30));
    const auto packed = Compute(*model, items);
    for (Padding padding : {Padding::kBucket, Padding::kFixed}) {
      const auto padded = Compute(*model, items, padding);
      for (size_t i = 0; i < items.size(); ++i) {
        EXPECT_LT(LargestDifference(packed[i], padded[i]), kTolerance) << attention;
      }
    }
  }
}

TEST_F(EncoderTest, HiddenKeysAreAsIfTheSequenceEndedBeforeThem) {
  for (const char* attention : kAttentions) {
    auto model = Load(Init(AttentionParams(attention)));
    const Item whole = Floats(12, 16);
    Item start;
    start.inputs["x"] = whole.inputs.at("x").Rows(0, 9);
    Item masked = whole;
    auto [mask, bytes] = Tensor::Allocate(DType::kBool, {12});
    std::memset(bytes, 1, 9);
    masked.inputs["input_mask"] = mask;
    const Tensor rows = Compute(*model, {masked})[0].at("y");
    EXPECT_LT(LargestDifference(rows.Rows(0, 9), Compute(*model, {start})[0].at("y")), kTolerance)
        << attention;
  }
}

TEST_F(EncoderTest, GivesNumbersWhereEveryKeyIsHidden) {
  for (const char* attention : kAttentions) {
    const std::string directory = Init(AttentionParams(attention));
    const EncoderReference reference(directory);
    Item item = Floats(5, 16);
    item.inputs["input_mask"] = Tensor::Allocate(DType::kBool, {5}).first;
    EXPECT_LT(
        LargestDifference(Compute(*Load(directory), {item})[0].at("y"), reference.Compute(item)),
        kTolerance)
        << attention;
  }
}

TEST_F(EncoderTest, SwapsItsAttentionForAnotherOnTheSameWeights) {
  const Item item = Floats(20, 16);
  const std::string directory = Init(AttentionParams("softmax"));
  std::vector<Tensor> results;
  for (const std::string attention : {"softmax", "efficient", "elu", "taylor", "linformer"}) {
    const std::string params = AttentionParams(attention);
    // Linformer has two matrices more.
    const std::string place = attention == "linformer" ? Init(params) : directory;
    Write(place, "config.json",
          R"({"architecture": "linserve.Encoder", "params": )" + params + "}");
    auto model = Load(place);
    ASSERT_NE(model, nullptr);
    results.push_back(Compute(*model, {item})[0].at("y"));
    EXPECT_EQ(results.back().shape(), (Shape{20, 16}));
    for (size_t i = 0; i + 1 < results.size(); ++i) {
      EXPECT_GT(LargestDifference(results[i], results.back()), 1e-3) << attention;
    }
  }
}

TEST_F(EncoderTest, LaterRowsChangeNoEarlierOneWhenCausal) {
  for (const char* attention : {"softmax", "efficient", "elu", "taylor"}) {
    auto model = Load(Init(AttentionParams(attention, R"(, "causal": true)")));
    const Item whole = Floats(30, 16);
    Item start;
    start.inputs["x"] = whole.inputs.at("x").Rows(0, 11);
    EXPECT_LT(LargestDifference(Compute(*model, {whole})[0].at("y").Rows(0, 11),
                                Compute(*model, {start})[0].at("y")),
              kTolerance)
        << attention;
  }
}

TEST_F(EncoderTest, ComputesInBfloat16CloseToFloat32) {
  for (const std::string attention : kAttentions) {
    for (const char* causal : {"false", "true"}) {
      const std::string directory = Init(R"({"attention": ")" + attention +
                                         R"(", "dim": 64, "depth": 3, "heads": 4, "seq_len": 200,
                                           "k": 32, "positions": "sinusoidal", "causal": )" +
                                         causal + "}");
      LoadOptions options;
      options.dtype = "bf16";
      auto exact = Load(directory);
      auto rounded = Load(directory, options);
      for (int64_t length : {1, 9, 200}) {
        const Item item = Floats(length, 64);
        EXPECT_GE(SmallestCosine(Compute(*exact, {item})[0].at("y"),
                                 Compute(*rounded, {item})[0].at("y")),
                  0.999)
            << attention << " " << length;
      }
    }
  }
}

TEST_F(EncoderTest, TakesLongSequencesWithoutALimit) {
  for (const char* attention : {"efficient", "elu", "taylor"}) {
    for (const char* causal : {"false", "true"}) {
      auto model = Load(Init(R"({"attention": ")" + std::string(attention) +
                             R"(", "dim": 8, "depth": 1, "heads": 2,
                                                         "positions": "rotary", "causal": )" +
                             causal + "}"));
      const Tensor y = Compute(*model, {Floats(16384, 8)})[0].at("y");
      EXPECT_EQ(y.shape(), (Shape{16384, 8}));
      EXPECT_LT(LargestDifference(y, y), kTolerance);  // no NaN
    }
  }
}

TEST_F(EncoderTest, TakesOneLayerAStepAndLeavesItsInputsAsTheyWere) {
  auto model = Load(Init(AttentionParams("elu", R"(, "positions": "sinusoidal")")));
  const Item item = Floats(6, 16);
  const Tensor before = *Convert(*Convert(item.inputs.at("x"), DType::kF64), DType::kF32);
  const Padder padder(model->info().signature, Padding::kPacked);
  auto forward = model->Start(padder.Pad({&item}));
  ASSERT_TRUE(forward.ok());
  EXPECT_FALSE(*(*forward)->Advance(1));
  EXPECT_TRUE(*(*forward)->Advance(1));
  EXPECT_EQ(LargestDifference(item.inputs.at("x"), before), 0);
}

}  // namespace
}  // namespace linserve
