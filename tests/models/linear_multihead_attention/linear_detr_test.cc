#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/linear_multihead_attention/detr_reference.h"
#include "models/model_fixture.h"
#include "models/placement/tensor_bridge.h"
#include "models/random_weights.h"
#include "models/reference_difference.h"

namespace linserve {
namespace {

using testing::HasSubstr;

constexpr int64_t kDetrWidth = 16;
constexpr int64_t kDetrLength = 24;
constexpr int64_t kDetrQueries = 9;

// Gives the arguments that the whole and its layers share.
std::string Shared(const std::string& more) {
  return R"({"d_model": 16, "nhead": 4, "dim_feedforward": 20, "proj_k": 5, "seq_len": 24)" + more;
}

std::string Whole(const std::string& more = "") {
  return Shared(R"(, "num_encoder_layers": 2, "num_decoder_layers": 3, "num_queries": 9)" + more +
                "}");
}

class LinearDetrTest : public ModelFixture {
 protected:
  std::string Directory(const std::string& architecture, const std::string& params) {
    return ModelFixture::Directory("linear_detr." + architecture, params);
  }

  Item Image(int64_t length, int64_t queries, bool masked) {
    Item item;
    item.inputs["src"] = RandomFloats({length, kDetrWidth});
    item.inputs["pos_embed"] = RandomFloats({length, kDetrWidth});
    item.inputs["query_embed"] = RandomFloats({queries, kDetrWidth});
    if (masked) item.inputs["mask"] = RandomMask(length);
    item.options.outputs = {"hs", "memory"};
    return item;
  }

  std::vector<Item> RandomImages(bool masked) {
    std::vector<Item> items;
    const int64_t count = Any(1, 5);
    for (int64_t i = 0; i < count; ++i) {
      items.push_back(Image(Any(1, kDetrLength), Any(1, kDetrQueries), masked));
    }
    return items;
  }

  std::string Error(const std::string& architecture, const std::string& params) {
    return InitError("linear_detr." + architecture, params);
  }
};

struct DetrVariant {
  const char* params;
  DetrReference::Options options;
};

const std::vector<DetrVariant>& DetrVariants() {
  static const std::vector<DetrVariant> variants = {
      {"", {4, false, false}},
      {R"(, "activation": "gelu", "dropout": 0.1)", {4, true, false}},
      {R"(, "normalize_before": true)", {4, false, true}},
  };
  return variants;
}

TEST_F(LinearDetrTest, ComputesWhatItsRestatementDoesInEveryPadding) {
  for (const DetrVariant& variant : DetrVariants()) {
    const std::string directory = Directory(
        "Transformer", Whole(variant.params + std::string(R"(, "param_sharing": "none")")));
    const TensorMap weights = ReadWeights(directory);
    auto model = Load(directory);
    for (int round = 0; round < 10; ++round) {
      const std::vector<Item> items = RandomImages(round % 2 == 1);
      std::vector<DetrResult> expected;
      for (const Item& item : items) {
        expected.push_back(DetrTransformer(weights, variant.options, 2, 3, item));
      }
      for (Padding padding : {Padding::kPacked, Padding::kBucket, Padding::kFixed}) {
        const auto outputs = Compute(*model, items, padding);
        for (size_t i = 0; i < items.size(); ++i) {
          ASSERT_LT(ScaledDifference(outputs[i].at("hs"), expected[i].hs[2]), kTolerance)
              << Name(padding);
          ASSERT_LT(ScaledDifference(outputs[i].at("memory"), expected[i].memory), kTolerance);
        }
      }
    }
  }
}

TEST_F(LinearDetrTest, ComputesManyBlocksOfRowsAsItsRestatementDoes) {
  for (const DetrVariant& variant : DetrVariants()) {
    for (const char* sharing : {"none", "layerwise"}) {
      const std::string directory = Directory(
          "Transformer", R"({"d_model": 16, "nhead": 4, "dim_feedforward": 20, "proj_k": 37,
                             "seq_len": 700, "num_queries": 300, "num_encoder_layers": 1,
                             "num_decoder_layers": 2, "param_sharing": ")" +
                             std::string(sharing) + '"' + variant.params + "}");
      const TensorMap weights = ReadWeights(directory);
      const std::vector<Item> items = {Image(700, 300, true), Image(129, 1, false),
                                       Image(Any(256, 700), Any(128, 300), true)};
      const auto outputs = Compute(*Load(directory), {items[0], items[2]});
      const auto alone = Compute(*Load(directory), {items[1]});
      for (const auto& [item, output] :
           {std::pair(0, outputs[0]), std::pair(2, outputs[1]), std::pair(1, alone[0])}) {
        const DetrResult expected = DetrTransformer(weights, variant.options, 1, 2, items[item]);
        EXPECT_LT(ScaledDifference(output.at("hs"), expected.hs[1]), kTolerance) << sharing;
        EXPECT_LT(ScaledDifference(output.at("memory"), expected.memory), kTolerance) << sharing;
      }
    }
  }
}

TEST_F(LinearDetrTest, ReturnsEveryDecoderLayerIfAsked) {
  const std::string directory =
      Directory("Transformer", Whole(R"(, "return_intermediate_dec": true)"));
  const TensorMap weights = ReadWeights(directory);
  auto model = Load(directory);
  EXPECT_EQ(ToString(model->info().signature.FindOutput("hs")->axes), "[3, q, 16]");
  for (int round = 0; round < 10; ++round) {
    const std::vector<Item> items = RandomImages(false);
    for (Padding padding : {Padding::kPacked, Padding::kFixed}) {
      const auto outputs = Compute(*model, items, padding);
      for (size_t i = 0; i < items.size(); ++i) {
        const DetrResult expected = DetrTransformer(weights, {4, false, false}, 2, 3, items[i]);
        ASSERT_LT(ScaledDifference(outputs[i].at("hs"), expected.hs), kTolerance);
      }
    }
  }
}

// The tensors of one layer of the whole, under the layer's own names.
TensorMap Layer(const TensorMap& weights, const std::string& prefix) {
  TensorMap layer;
  for (const auto& [name, tensor] : weights) {
    if (name.starts_with(prefix)) layer[name.substr(prefix.size())] = tensor;
  }
  return layer;
}

TEST_F(LinearDetrTest, TheWholeIsItsLayersOneAfterAnother) {
  for (const DetrVariant& variant : DetrVariants()) {
    const std::string whole = Directory("Transformer", Whole(variant.params));
    const TensorMap weights = ReadWeights(whole);
    const auto layer = [&](const char* architecture, const std::string& prefix,
                           const std::string& more) {
      const std::string directory =
          Init(std::string("linear_detr.") + architecture, Shared(variant.params + more) + "}");
      WriteWeights(directory, Layer(weights, prefix));
      return Load(directory);
    };
    const Item image = Image(17, 6, true);
    const TensorMap expected = Compute(*Load(whole), {image})[0];
    Item encoded;
    encoded.inputs["src"] = image.inputs.at("src");
    encoded.inputs["pos"] = image.inputs.at("pos_embed");
    encoded.inputs["src_key_padding_mask"] = image.inputs.at("mask");
    for (const char* index : {"0", "1"}) {
      auto model =
          layer("TransformerEncoderLayer", std::string("encoder.layers.") + index + ".", "");
      encoded.inputs["src"] = Compute(*model, {encoded})[0].at("y");
    }
    at::Tensor memory = ToAten(encoded.inputs["src"]).to(at::kDouble);
    if (variant.options.normalize_before) {
      memory = DetrReference(weights, "encoder.", variant.options).Norm("norm", memory);
    }
    EXPECT_LT(ScaledDifference(expected.at("memory"), memory), kTolerance);
    Item decoded;
    decoded.inputs["tgt"] = Tensor::Allocate(DType::kF32, {6, kDetrWidth}).first;
    decoded.inputs["memory"] = expected.at("memory");
    decoded.inputs["pos"] = image.inputs.at("pos_embed");
    decoded.inputs["query_pos"] = image.inputs.at("query_embed");
    decoded.inputs["memory_key_padding_mask"] = image.inputs.at("mask");
    for (const char* index : {"0", "1", "2"}) {
      auto model = layer("TransformerDecoderLayer", std::string("decoder.layers.") + index + ".",
                         R"(, "num_queries": 9)");
      decoded.inputs["tgt"] = Compute(*model, {decoded})[0].at("y");
    }
    const at::Tensor hs = DetrReference(weights, "decoder.", variant.options)
                              .Norm("norm", ToAten(decoded.inputs["tgt"]).to(at::kDouble));
    EXPECT_LT(ScaledDifference(expected.at("hs"), hs), kTolerance);
  }
}

TEST_F(LinearDetrTest, ALayersPositionsAndMasksAreOptional) {
  for (const DetrVariant& variant : DetrVariants()) {
    const std::string directory =
        Directory("TransformerDecoderLayer", Shared(variant.params) + R"(, "num_queries": 9})");
    const DetrReference reference(ReadWeights(directory), "", variant.options);
    auto model = Load(directory);
    for (int given = 0; given < 16; ++given) {
      std::vector<Item> items;
      for (int i = 0; i < 3; ++i) {
        const int64_t n = Any(1, kDetrLength);
        const int64_t q = Any(1, kDetrQueries);
        Item& item = items.emplace_back();
        item.inputs["tgt"] = RandomFloats({q, kDetrWidth});
        item.inputs["memory"] = RandomFloats({n, kDetrWidth});
        if ((given & 1) != 0) item.inputs["pos"] = RandomFloats({n, kDetrWidth});
        if ((given & 2) != 0) item.inputs["query_pos"] = RandomFloats({q, kDetrWidth});
        if ((given & 4) != 0) item.inputs["tgt_key_padding_mask"] = RandomMask(q);
        if ((given & 8) != 0) item.inputs["memory_key_padding_mask"] = RandomMask(n);
      }
      const auto outputs = Compute(*model, items, Padding::kBucket);
      for (size_t i = 0; i < items.size(); ++i) {
        const auto in = [&](const char* name) { return Input(items[i], name); };
        const at::Tensor expected =
            reference.DecoderLayer(in("tgt"), in("query_pos"), in("tgt_key_padding_mask"),
                                   in("memory"), in("pos"), in("memory_key_padding_mask"));
        ASSERT_LT(ScaledDifference(outputs[i].at("y"), expected), kTolerance) << given;
      }
    }
  }
}

TEST_F(LinearDetrTest, ThePackagesLayoutIsPossibleForSingleRequests) {
  auto model = Load(Directory("Transformer", Whole(R"(, "projection_layout": "package")")));
  const Signature& signature = model->info().signature;
  EXPECT_TRUE(signature.request_is_unit);
  EXPECT_TRUE(Validate(signature, Image(kDetrLength, kDetrQueries, true)).ok());
  EXPECT_THAT(std::string(Validate(signature, Image(kDetrLength, 8, true)).message()),
              HasSubstr("q is 8, expected exactly 9"));
  const Item first = Image(kDetrLength, kDetrQueries, false);
  const auto with = [&](const Item& other) { return Compute(*model, {first, other})[0]; };
  EXPECT_GT(LargestDifference(with(Image(kDetrLength, kDetrQueries, false)),
                              with(Image(kDetrLength, kDetrQueries, false))),
            1e-3);
}

TEST_F(LinearDetrTest, RefusesImpossibleArgumentsAndLongerInputs) {
  EXPECT_THAT(Error("Transformer", R"({"d_model": 10, "nhead": 4})"),
              HasSubstr("\"d_model\" is 10, expected a multiple of nhead = 4"));
  EXPECT_THAT(Error("Transformer", R"({"param_sharing": "layervise"})"),
              HasSubstr("\"param_sharing\" is \"layervise\", expected one of none, headwise"));
  EXPECT_THAT(Error("TransformerEncoderLayer", R"({"activation": "glu"})"),
              HasSubstr("\"activation\" is \"glu\", expected one of relu, gelu"));
  EXPECT_THAT(Error("TransformerEncoderLayer", R"({"num_queries": 3})"),
              HasSubstr("unknown parameter \"num_queries\""));
  EXPECT_THAT(Error("Transformer", R"({"num_decoder_layers": 0})"),
              HasSubstr("\"num_decoder_layers\" is 0"));
  auto model = Load(Directory("Transformer", Whole()));
  const auto check = [&](const Item& item) {
    return std::string(Validate(model->info().signature, item).message());
  };
  EXPECT_THAT(check(Image(kDetrLength + 1, 3, false)), HasSubstr("n is 25, expected at most 24"));
  EXPECT_THAT(check(Image(3, kDetrQueries + 1, false)), HasSubstr("q is 10, expected at most 9"));
}

TEST_F(LinearDetrTest, HasTheParametersOfDetrAndItsProjections) {
  const auto report = InspectModel(
      Init("linear_detr.Transformer", R"({"d_model": 32, "nhead": 4, "dim_feedforward": 64,
          "proj_k": 8, "seq_len": 100, "num_queries": 20, "num_encoder_layers": 2,
          "num_decoder_layers": 1})"));
  ASSERT_TRUE(report.ok()) << report.status();
  const auto attention = [](int64_t length) {
    return 4 * 32 * 32 + 4 * 32 + 2 * 8 * length + 2 * 8;
  };
  const int64_t feed_forward = 2 * 32 * 64 + 64 + 32;
  const int64_t norm = 2 * 32;
  EXPECT_EQ(report->info.parameters, 2 * (attention(100) + feed_forward + 2 * norm) +
                                         attention(20) + attention(100) + feed_forward + 3 * norm +
                                         norm);
  const double rows = 2.0 * 32 * 32;
  const double products = 4.0 * 8 * 32;  // of E and F, or of scores and values
  const double encoder = 4 * rows + 2 * products + 4.0 * 32 * 64;
  const double self = 4 * rows + 2 * products;
  const double cross = 100 * (2 * rows + products) + 20 * (2 * rows + products);
  const double by_hand = 100 * 2 * encoder + 20 * (self + 4.0 * 32 * 64) + cross;
  EXPECT_NEAR(report->flops_per_token * 100 / by_hand, 1, 0.05);
}

TEST_F(LinearDetrTest, ComputesInOtherTypesCloseToFloat32) {
  for (const std::string& type : TypesOfCpu()) {
    if (type == "f32") continue;
    for (const char* more : {"", R"(, "normalize_before": true)"}) {
      const std::string directory =
          Init("linear_detr.Transformer",
               R"({"d_model": 64, "nhead": 4, "dim_feedforward": 128, "proj_k": 16, "seq_len": 300,
                   "num_encoder_layers": 2, "num_decoder_layers": 2, "num_queries": 150)" +
                   std::string(more) + "}");
      const auto exact = Load(directory);
      const auto rounded = Load(directory, {.dtype = type});
      for (const auto& [length, queries] :
           {std::pair(1, 1), std::pair(24, 9), std::pair(300, 150)}) {
        Item item = Image(length, queries, true);
        item.inputs["src"] = RandomFloats({length, 64});
        item.inputs["pos_embed"] = RandomFloats({length, 64});
        item.inputs["query_embed"] = RandomFloats({queries, 64});
        const TensorMap expected = Compute(*exact, {item})[0];
        const TensorMap outputs = Compute(*rounded, {item})[0];
        const double least = type == "int8" ? 0.99 : 0.999;
        EXPECT_GE(SmallestCosine(expected.at("hs"), outputs.at("hs")), least) << length << type;
        EXPECT_GE(SmallestCosine(expected.at("memory"), outputs.at("memory")), least)
            << length << type;
      }
    }
  }
}

}  // namespace
}  // namespace linserve
