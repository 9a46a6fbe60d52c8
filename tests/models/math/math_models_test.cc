#include "models/math/math_models.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <optional>

#include "models/model_fixture.h"

namespace linserve {
namespace {

constexpr const char* kMethods[] = {"softmax", "efficient", "kernel", "taylor", "linformer"};

class MathModelsTest : public ModelFixture {
 protected:
  std::unique_ptr<Model> Method(const std::string& method, const std::string& params = "{}",
                                const ModelLoadOptions& options = {}) {
    return Load(Init("math." + method, params), options);
  }

  // Makes an item; `slots` is for linformer's projections.
  Item Random(int64_t queries, int64_t keys, bool masked,
              std::optional<int64_t> slots = std::nullopt) {
    Item item;
    item.inputs["query"] = RandomFloats({queries, 5});
    item.inputs["key"] = RandomFloats({keys, 5});
    item.inputs["value"] = RandomFloats({keys, 3});
    if (slots) {
      item.inputs["e"] = RandomFloats({*slots, keys});
      item.inputs["f"] = RandomFloats({*slots, keys});
    }
    if (masked) item.inputs["mask"] = RandomMask(keys);
    return item;
  }
};

TEST_F(MathModelsTest, HaveNoWeights) {
  for (const char* method : kMethods) {
    const auto report = InspectModel(Init("math." + std::string(method), "{}"));
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->info.parameters, 0);
    EXPECT_EQ(report->difference, "");
  }
}

TEST_F(MathModelsTest, ComputeTheirFormulaForOneQueryAndTwoKeys) {
  Item item;
  item.inputs["query"] = Tensor::FromFloats({1, 1}, std::vector<float>{1});
  item.inputs["key"] = Tensor::FromFloats({2, 1}, std::vector<float>{2, -1});
  item.inputs["value"] = Tensor::FromFloats({2, 1}, std::vector<float>{10, 20});
  const auto y = [&](const std::string& method, const std::string& params = "{}") {
    return Compute(*Method(method, params), {item})[0].at("y").data<float>()[0];
  };
  const double e = std::exp(1.0);
  const double softmax = 1 / (1 + std::exp(-3.0));
  EXPECT_NEAR(y("softmax"), 10 * softmax + 20 * (1 - softmax), 1e-5);
  EXPECT_NEAR(y("efficient"), 10 * softmax + 20 * (1 - softmax), 1e-5);  // one feature
  // The features phi(1), phi(2) and phi(-1) are 2, 3 and 1/e.
  EXPECT_NEAR(y("kernel", R"({"normalize": false})"), 60 + 40 / e, 1e-5);
  EXPECT_NEAR(y("kernel"), (60 + 40 / e) / (6 + 2 / e), 1e-5);
  EXPECT_NEAR(y("taylor"), 10, 1e-5);  // weights 2 and 0
  item.inputs["e"] = Tensor::FromFloats({1, 2}, std::vector<float>{1, 1});
  item.inputs["f"] = Tensor::FromFloats({1, 2}, std::vector<float>{0.5, 2});
  EXPECT_NEAR(y("linformer"), 45, 1e-5);  // one slot
}

TEST_F(MathModelsTest, GiveTheSameRowsAloneAndInEveryPadding) {
  std::uniform_int_distribution<int64_t> any(1, 50);
  for (const std::string method : {"softmax", "efficient", "kernel", "taylor"}) {
    for (bool causal : {false, true}) {
      SCOPED_TRACE(method + (causal ? ", causal" : ""));
      auto model = Method(method, causal ? R"({"causal": true})" : "{}");
      for (int round = 0; round < 20; ++round) {
        std::vector<Item> items;
        for (int i = 0; i < 1 + round % 6; ++i) {
          const int64_t queries = round == 0 ? 1 : any(random_);
          items.push_back(Random(queries, causal ? queries : any(random_), round % 2 == 1));
        }
        ExpectTheSameAloneAndTogether(*model, items);
      }
    }
  }
}

TEST_F(MathModelsTest, GiveLinformerOfAnyNumberOfSlotsTheSameRowsAloneAndTogether) {
  std::uniform_int_distribution<int64_t> any(1, 50);
  auto model = Method("linformer");
  for (int round = 0; round < 20; ++round) {
    // Items that share a batch have as many keys, since projections have a column for each.
    const int64_t keys = any(random_);
    std::vector<Item> items;
    for (int i = 0; i < 1 + round % 6; ++i) {
      items.push_back(Random(any(random_), keys, round % 2 == 1, any(random_)));
    }
    ExpectTheSameAloneAndTogether(*model, items);
  }
}

TEST_F(MathModelsTest, LaterRowsChangeNoEarlierOneWhenCausal) {
  for (const std::string method : {"softmax", "efficient", "kernel", "taylor"}) {
    auto model = Method(method, R"({"causal": true})");
    const Item whole = Random(30, 30, false);
    Item start;
    for (const auto& [name, tensor] : whole.inputs) start.inputs[name] = tensor.Rows(0, 11);
    EXPECT_LT(LargestDifference(Compute(*model, {whole})[0].at("y").Rows(0, 11),
                                Compute(*model, {start})[0].at("y")),
              kTolerance)
        << method;
  }
}

TEST_F(MathModelsTest, GiveZerosWhereEveryKeyIsHidden) {
  for (const std::string method : kMethods) {
    Item item =
        Random(4, 4, false, method == "linformer" ? std::optional<int64_t>(9) : std::nullopt);
    item.inputs["mask"] = MaskOf(4, 0, 0);
    const Tensor zeros = Tensor::FromFloats({4, 3}, std::vector<float>(12, 0));
    EXPECT_EQ(LargestDifference(Compute(*Method(method), {item})[0].at("y"), zeros), 0) << method;
  }
}

TEST_F(MathModelsTest, ComputeInBfloat16CloseToFloat32) {
  SKIP_WITHOUT_TYPE("bf16");
  ModelLoadOptions options;
  options.dtype = "bf16";
  for (const std::string method : kMethods) {
    const auto slots = method == "linformer" ? std::optional<int64_t>(8) : std::nullopt;
    Item item = Random(64, 64, true, slots);
    // The projections are small, since scores of thousands would be another question.
    if (slots) item.inputs["e"] = Tensor::FromFloats({8, 64}, std::vector<float>(512, 0.02F));
    EXPECT_GE(SmallestCosine(Compute(*Method(method), {item})[0].at("y"),
                             Compute(*Method(method, "{}", options), {item})[0].at("y")),
              0.999)
        << method;
  }
}

TEST_F(MathModelsTest, CountTheOperationsOfAllLengthsAlike) {
  const auto flops = [&](const std::string& method, const std::string& params = "{}") {
    const auto report = InspectModel(Init("math." + method, params));
    EXPECT_EQ(report->length, 512);
    return report->flops_per_token;
  };
  // n, m, d, v and r are all 512: two products, of 2·512·512 a row each.
  const double product = 2.0 * 512 * 512;
  EXPECT_NEAR(flops("softmax"), 2 * product, 1e-3);
  EXPECT_NEAR(flops("softmax", R"({"causal": true})"), 2 * product * 513 / 1024, 1e-3);
  EXPECT_NEAR(flops("linformer"), 4 * product, 1e-3);
  for (const char* method : {"efficient", "kernel", "taylor"}) {
    EXPECT_NEAR(flops(method) / (2 * product), 1, 0.05) << method;
  }
}

TEST_F(MathModelsTest, RefuseWhatDoesNotFitTogether) {
  const auto error = [&](const std::string& method, const std::string& params, const Item& item) {
    return std::string(Validate(Method(method, params)->info().signature, item).message());
  };
  const std::string causal = R"({"causal": true})";
  EXPECT_NE(error("softmax", causal, Random(3, 4, false)).find("'key'"), std::string::npos);
  EXPECT_EQ(error("softmax", "{}", Random(3, 4, false)), "");
  Item item = Random(3, 4, false);
  item.inputs["query"] = RandomFloats({3, 6});
  EXPECT_NE(error("efficient", "{}", item).find("d of [m, d] to be 6"), std::string::npos);
  item = Random(3, 4, false);
  item.inputs["mask"] = MaskOf(3, 0, 3);
  EXPECT_NE(error("taylor", "{}", item).find("'mask'"), std::string::npos);
  EXPECT_NE(error("linformer", "{}", Random(3, 4, false)).find("'e'"), std::string::npos);
}

TEST_F(MathModelsTest, RefuseArgumentsOfOtherMethods) {
  const std::string unknown = InitError("math.softmax", R"({"normalize": true})");
  EXPECT_NE(unknown.find("\"normalize\""), std::string::npos) << unknown;
  const std::string wrong = InitError("math.kernel", R"({"normalize": 1})");
  EXPECT_NE(wrong.find("\"normalize\" is 1, expected true or false"), std::string::npos) << wrong;
}

}  // namespace
}  // namespace linserve
