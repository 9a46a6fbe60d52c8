#include "models/encoder/encoder.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "models/encoder/encoder_reference.h"
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
  std::string Init(const std::string& params) { return Directory("linserve.Encoder", params); }

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
    // Slots are sums of many rows here, so that scores and what they lose are larger.
    const bool slots = params.find("linformer") != std::string::npos;
    for (bool masked : {false, true}) {
      for (int64_t length : lengths) {
        const Item item = Random(length, tokens, masked);
        EXPECT_LT(LargestDifference(Compute(*model, {item})[0].at("y"), reference.Compute(item)),
                  slots ? 3 * kTolerance : kTolerance)
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

TEST_F(EncoderTest, EqualsItsFormulasForSequencesOfManyBlocks) {
  for (const char* attention : {"softmax", "efficient", "elu", "taylor"}) {
    for (const char* causal : {"false", "true"}) {
      ExpectReference(R"({"attention": ")" + std::string(attention) + R"(", "causal": )" + causal +
                          R"(, "dim": 16, "depth": 1, "heads": 2, "positions": "rotary"})",
                      {1030});
    }
  }
}

// Taylor's series gives such heads a weight of 0 to what F64 has a weight of 1e-16.
TEST_F(EncoderTest, EqualsItsFormulasForHeadsOfOneFeature) {
  for (const char* attention : {"softmax", "efficient", "elu", "linformer"}) {
    for (const char* causal : {"false", "true"}) {
      ExpectReference(AttentionParams(
          attention, R"(, "heads": 5, "dim_head": 1, "causal": )" + std::string(causal)));
    }
  }
}

TEST_F(EncoderTest, GivesEachOfManyEqualRowsWhatItGivesOneAlone) {
  constexpr int64_t kMany = 16384;
  for (const char* attention : {"efficient", "elu", "taylor"}) {
    for (const char* causal : {"false", "true"}) {
      const std::string params = R"({"attention": ")" + std::string(attention) +
                                 R"(", "causal": )" + causal +
                                 R"(, "dim": 16, "depth": 1, "heads": 2})";
      SCOPED_TRACE(params);
      const auto model = Load(Init(params));
      const Item one = Random(1, /*tokens=*/false, /*masked=*/false);
      const auto* row = one.inputs.at("x").data<float>();
      std::vector<float> rows;
      for (int64_t i = 0; i < kMany; ++i) rows.insert(rows.end(), row, row + 16);
      Item many = one;
      many.inputs["x"] = Tensor::FromFloats({kMany, 16}, rows);
      const Tensor alone = Compute(*model, {one})[0].at("y");
      const Tensor all = Compute(*model, {many})[0].at("y");
      for (const int64_t i : {int64_t{1}, int64_t{1000}, kMany - 1}) {
        EXPECT_LT(LargestDifference(all.Rows(i, i + 1), alone), kTolerance) << i;
      }
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
  for (const std::string& params : Variants()) {
    SCOPED_TRACE(params);
    auto model = Load(Init(params));
    ExpectTheSameInMixes(*model, 4, [&](int64_t length, bool masked) {
      return Random(length, /*tokens=*/false, masked);
    });
  }
}

TEST_F(EncoderTest, PaddingRowsOfTokensTakePartInNothing) {
  for (const char* attention : kAttentions) {
    SCOPED_TRACE(attention);
    auto model =
        Load(Init(AttentionParams(attention, R"(, "num_tokens": 30, "positions": "learned")")));
    std::vector<Item> items;
    for (int64_t length : {3, 17, 40, 1, 17}) items.push_back(Tokens(length, 30));
    ExpectTheSameAloneAndTogether(*model, items);
  }
}

TEST_F(EncoderTest, HiddenKeysAreAsIfTheSequenceEndedBeforeThem) {
  for (const char* attention : kAttentions) {
    auto model = Load(Init(AttentionParams(attention)));
    const Item whole = Floats(12, 16);
    Item start;
    start.inputs["x"] = whole.inputs.at("x").Rows(0, 9);
    Item masked = whole;
    masked.inputs["input_mask"] = MaskOf(12, 0, 9);
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
    item.inputs["input_mask"] = MaskOf(5, 0, 0);
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
  SKIP_WITHOUT_TYPE("bf16");
  for (const std::string attention : kAttentions) {
    for (const char* causal : {"false", "true"}) {
      // Weights as they are before training: larger ones would sharpen Linformer's softmax, and
      // with it what BF16 rounds.
      const std::string directory = ModelFixture::Init(
          "linserve.Encoder", R"({"attention": ")" + attention +
                                  R"(", "dim": 64, "depth": 3, "heads": 4, "seq_len": 200,
                                           "k": 32, "positions": "sinusoidal", "causal": )" +
                                  causal + "}");
      ModelLoadOptions options;
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
  for (const char* attention : {"softmax", "efficient", "elu", "taylor"}) {
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
  EXPECT_FALSE(*(*forward)->Advance());
  EXPECT_TRUE(*(*forward)->Advance());
  EXPECT_EQ(LargestDifference(item.inputs.at("x"), before), 0);
}

}  // namespace
}  // namespace linserve
