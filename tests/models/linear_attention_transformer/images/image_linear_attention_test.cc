#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <span>

#include "models/model_fixture.h"
#include "models/placement/tensor_bridge.h"
#include "models/random_weights.h"
#include "models/reference_difference.h"

namespace linserve {
namespace {

using testing::HasSubstr;

constexpr const char* kImageLinearAttention = "linear_attention_transformer.ImageLinearAttention";

struct ImageOptions {
  int64_t chan = 6;
  int64_t chan_out = 6;
  int64_t kernel = 1;
  int64_t key_dim = 5;
  int64_t value_dim = 4;
  int64_t heads = 2;
  bool norm_queries = true;

  std::string Json() const {
    return R"({"chan": )" + std::to_string(chan) + R"(, "chan_out": )" + std::to_string(chan_out) +
           R"(, "kernel_size": )" + std::to_string(kernel) + R"(, "padding": )" +
           std::to_string(kernel / 2) + R"(, "key_dim": )" + std::to_string(key_dim) +
           R"(, "value_dim": )" + std::to_string(value_dim) + R"(, "heads": )" +
           std::to_string(heads) + R"(, "norm_queries": )" + (norm_queries ? "true" : "false") +
           "}";
  }
};

// The package's forward pass of one image, whole and in float64.
at::Tensor ImageReference(const TensorMap& weights, const ImageOptions& options, const Item& item) {
  const auto convolved = [&](const std::string& name, const at::Tensor& image) {
    const auto weight = [&](const char* part) {
      return ToAten(weights.at(name + part)).to(at::kDouble);
    };
    return at::conv2d(image, weight(".weight"), weight(".bias"), {1, 1},
                      {options.kernel / 2, options.kernel / 2});
  };
  const auto heads = [&](const at::Tensor& image) {
    return image.reshape({options.heads, image.size(1) / options.heads, -1});
  };
  const at::Tensor x = ToAten(item.inputs.at("x")).to(at::kDouble).unsqueeze(0);
  const double scale = std::pow(static_cast<double>(options.key_dim), -0.25);
  at::Tensor q = heads(convolved("to_q", x)) * scale;
  at::Tensor k = heads(convolved("to_k", x)) * scale;
  at::Tensor v = heads(convolved("to_v", x));
  if (item.inputs.contains("context")) {
    const at::Tensor context = ToAten(item.inputs.at("context")).to(at::kDouble);
    const at::Tensor flat = context.reshape({1, options.chan, 1, -1});
    k = at::cat({k, heads(convolved("to_k", flat))}, 2);
    v = at::cat({v, heads(convolved("to_v", flat))}, 2);
  }
  if (options.norm_queries) q = at::softmax(q, 1);
  const at::Tensor context = at::matmul(at::softmax(k, 2), v.transpose(1, 2));
  const at::Tensor out = at::matmul(context.transpose(1, 2), q);
  return convolved("to_out", out.reshape({1, -1, x.size(2), x.size(3)})).squeeze(0);
}

class ImageLinearAttentionTest : public ModelFixture {
 protected:
  std::string Directory(const std::string& params) {
    return ModelFixture::Directory(kImageLinearAttention, params);
  }

  Item Image(const ImageOptions& options, int64_t height, int64_t width) {
    Item item;
    item.inputs["x"] = RandomFloats({options.chan, height, width});
    return item;
  }

  std::string Error(const std::string& params) { return InitError(kImageLinearAttention, params); }
};

std::vector<ImageOptions> ImageVariants() {
  return {{},
          {.chan_out = 3, .norm_queries = false},
          {.chan_out = 7, .kernel = 3},
          {.kernel = 5, .heads = 1, .norm_queries = false},
          {.kernel = 3, .key_dim = 1, .value_dim = 6, .heads = 3}};
}

TEST_F(ImageLinearAttentionTest, ComputesWhatItsRestatementDoesForImagesOfAllShapes) {
  for (const ImageOptions& options : ImageVariants()) {
    const std::string directory = Directory(options.Json());
    const TensorMap weights = ReadWeights(directory);
    auto model = Load(directory);
    for (const auto& [height, width] :
         std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {1, 9}, {8, 1}, {6, 10}, {17, 5}}) {
      for (const bool with_context : {false, true}) {
        std::vector<Item> items;
        for (int i = 0; i < 3; ++i) {
          items.push_back(Image(options, height, width));
          if (with_context) items.back().inputs["context"] = RandomFloats({options.chan, 15});
        }
        for (Padding padding : {Padding::kPacked, Padding::kBucket, Padding::kFixed}) {
          const auto outputs = Compute(*model, items, padding);
          for (size_t i = 0; i < items.size(); ++i) {
            ASSERT_LT(
                ScaledDifference(outputs[i].at("y"), ImageReference(weights, options, items[i])),
                kTolerance)
                << options.Json() << height << "x" << width << ", context " << with_context;
          }
        }
      }
    }
  }
}

TEST_F(ImageLinearAttentionTest, ComputesLargeImagesInStripesWithTheSameResult) {
  // Many heads, so that few pixels are computed at once: 1024, for 4 Mi numbers a tensor.
  ImageOptions options{.chan = 2, .chan_out = 2, .key_dim = 32, .value_dim = 24, .heads = 128};
  // A kernel of more than a pixel reads beyond its stripe, along either axis.
  const std::vector<std::pair<int64_t, int64_t>> shapes = {{40, 31}, {1, 1200}, {31, 40}};
  for (const int64_t kernel : {1, 3}) {
    options.kernel = kernel;
    const std::string directory = Directory(options.Json());
    const TensorMap weights = ReadWeights(directory);
    auto model = Load(directory);
    for (const auto& [height, width] :
         kernel == 1 ? std::span(shapes).last(1) : std::span(shapes).first(2)) {
      Item item = Image(options, height, width);
      item.inputs["context"] = RandomFloats({2, 1200});
      ASSERT_LT(ScaledDifference(Compute(*model, {item})[0].at("y"),
                                 ImageReference(weights, options, item)),
                kTolerance)
          << height << "x" << width;
    }
  }
}

TEST_F(ImageLinearAttentionTest, ComputesInOtherTypesCloseToFloat32) {
  for (const std::string& type : TypesOfCpu()) {
    if (type == "f32") continue;
    for (const bool norm_queries : {true, false}) {
      const ImageOptions options{
          .chan = 48, .chan_out = 32, .key_dim = 16, .value_dim = 24, .norm_queries = norm_queries};
      const std::string directory = Directory(options.Json());
      const auto exact = Load(directory);
      const auto rounded = Load(directory, {.dtype = type});
      for (const auto& [height, width] : {std::pair(1, 1), std::pair(9, 7), std::pair(31, 20)}) {
        Item item = Image(options, height, width);
        item.inputs["context"] = RandomFloats({options.chan, 40});
        const auto pixels = [&](Model& model) {
          return FromAten(ToAten(Compute(model, {item})[0].at("y")).flatten(1).t().contiguous());
        };
        EXPECT_GE(SmallestCosine(pixels(*exact), pixels(*rounded)), type == "int8" ? 0.99 : 0.999)
            << height << "x" << width << " in " << type;
      }
    }
  }
}

TEST_F(ImageLinearAttentionTest, AManyImageBatchEqualsItsImages) {
  const ImageOptions options{.key_dim = 32, .value_dim = 32, .heads = 64};
  auto model = Load(Directory(options.Json()));
  std::vector<Item> items;
  for (int i = 0; i < 7; ++i) items.push_back(Image(options, 30, 28));  // 840 of 2048 pixels each
  const auto together = Compute(*model, items);
  for (size_t i = 0; i < items.size(); ++i) {
    EXPECT_LT(LargestDifference(together[i], Compute(*model, {items[i]})[0]), kTolerance);
  }
}

TEST_F(ImageLinearAttentionTest, OfAContextOnlyTheNumberOfPositionsCounts) {
  const ImageOptions options;
  auto model = Load(Directory(options.Json()));
  Item item = Image(options, 4, 4);
  const Tensor context = RandomFloats({options.chan, 30});
  item.inputs["context"] = context;
  const TensorMap expected = Compute(*model, {item})[0];
  for (const Shape& shape : {Shape{options.chan, 6, 5}, Shape{options.chan, 5, 2, 3}}) {
    item.inputs["context"] = context.Reshaped(shape);
    FoldAxes(model->info().signature, item);
    ASSERT_TRUE(Validate(model->info().signature, item).ok());
    EXPECT_EQ(LargestDifference(Compute(*model, {item})[0], expected), 0);
  }
}

TEST_F(ImageLinearAttentionTest, StaysFiniteForLargeNumbers) {
  SKIP_WITHOUT_TYPE("bf16");
  const ImageOptions options;
  const std::string directory = Directory(options.Json());
  ModelLoadOptions narrow;
  narrow.dtype = "bf16";
  Item item;
  item.inputs["x"] = Tensor::FromFloats({6, 4, 4}, std::vector<float>(96, 1e4f));
  for (const ModelLoadOptions& load : {ModelLoadOptions(), narrow}) {
    const TensorMap outputs = Compute(*Load(directory, load), {item})[0];
    EXPECT_TRUE(at::isfinite(ToAten(outputs.at("y"))).all().item<bool>());
  }
}

TEST_F(ImageLinearAttentionTest, RefusesConvolutionsThatChangeTheSize) {
  EXPECT_THAT(Error(R"({"chan": 4, "kernel_size": 3})"),
              HasSubstr("\"padding\" is missing, expected 1"));
  EXPECT_THAT(Error(R"({"chan": 4, "kernel_size": 1, "padding": 1})"),
              HasSubstr("\"padding\" is 1, expected 0"));
  EXPECT_THAT(Error(R"({"chan": 4, "kernel_size": 4, "padding": 2})"),
              HasSubstr("\"kernel_size\" is 4, expected an odd number"));
  EXPECT_THAT(Error(R"({"chan": 4, "stride": 2})"), HasSubstr("\"stride\" is 2, expected 1"));
  EXPECT_THAT(Error(R"({"heads": 4})"), HasSubstr("\"chan\" is missing"));
}

TEST_F(ImageLinearAttentionTest, HasThePackagesParametersAndTheFlopsOfItsProducts) {
  const auto report =
      InspectModel(Init(kImageLinearAttention,
                        R"({"chan": 8, "chan_out": 5, "kernel_size": 3, "padding": 1, "key_dim": 6,
                         "value_dim": 4, "heads": 2})"));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->info.parameters, 9 * 8 * (12 + 12 + 8) + 12 + 12 + 8 + 9 * 8 * 5 + 5);
  // A pixel takes the four convolutions, and context and result, 6 by 4 for each of 2 heads.
  const double pixel = 2.0 * 9 * 8 * (12 + 12 + 8) + 2.0 * 9 * 8 * 5 + 2 * 2.0 * 2 * 6 * 4;
  EXPECT_NEAR(report->flops_per_token / pixel, 1, 0.05);
}

TEST_F(ImageLinearAttentionTest, ComputesInBfloat16CloseToFloat32) {
  SKIP_WITHOUT_TYPE("bf16");
  for (const bool norm_queries : {true, false}) {
    ImageOptions options{.chan = 32, .chan_out = 32, .key_dim = 16, .value_dim = 16, .heads = 4};
    options.norm_queries = norm_queries;
    const std::string directory = Init(kImageLinearAttention, options.Json());
    ModelLoadOptions narrow;
    narrow.dtype = "bf16";
    const Item item = Image(options, 20, 30);
    const Tensor exact = Compute(*Load(directory), {item})[0].at("y");
    const Tensor rounded = Compute(*Load(directory, narrow), {item})[0].at("y");
    EXPECT_GE(SmallestCosine(exact.Reshaped({1, exact.elements()}),
                             rounded.Reshaped({1, rounded.elements()})),
              0.999);
  }
}

}  // namespace
}  // namespace linserve
