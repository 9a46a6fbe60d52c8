#include "models/fast_transformers/transformer.h"

#include <gmock/gmock.h>

#include "models/fast_transformers/fixture.h"

namespace linserve {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kFavor = R"("feature_map": {"name": "Favor", "n_dims": 10)";

// Every kind of attention, with every feature map.
std::vector<std::string> SelfAttentions() {
  std::vector<std::string> all = {
      R"("attention_type": "full")",
      R"("attention_type": "full", "value_dimensions": 5, "softmax_temp": 0.4)",
      R"("attention_type": "local", "local_context": 5, "activation": "gelu")",
      R"("attention_type": "local", "local_context": 16, "final_normalization": false)",
      R"("attention_type": "linear", "query_dimensions": 7)"};
  for (const std::string type : {"linear", "causal-linear"}) {
    for (const std::string map :
         {R"({"name": "Favor", "stabilize": true})", R"({"name": "Favor", "n_dims": 9})",
          R"({"name": "SmoothedRandomFourierFeatures", "n_dims": 11, "softmax_temp": 0.1})",
          R"({"name": "GeneralizedRandomFeatures", "kernel_fn": "sigmoid"})", R"("elu")"}) {
      all.push_back(R"("attention_type": ")" + type + R"(", "feature_map": )" + map);
    }
  }
  return all;
}

class FastEncoder : public ModelFixture {
 protected:
  Item Rows(int64_t length, bool masked, int64_t width = 12) {
    Item item = Floats(length, width);
    if (masked) item.inputs["length_mask"] = RandomMask(length);
    return item;
  }

  int64_t WidthOf(const Model& model) { return model.info().signature.inputs[0].axes[1].size; }

  std::vector<std::string> Warnings(const std::string& more) {
    const auto report = InspectModel(Init(kFastEncoder, FastArguments(more)));
    EXPECT_TRUE(report.ok()) << report.status();
    return report.ok() ? report->warnings : std::vector<std::string>();
  }

  static std::string Error(const std::string& more) {
    return InitError(kFastEncoder, FastArguments(more));
  }
};

TEST_F(FastEncoder, GivesTheSameRowsAloneAndInEveryPadding) {
  for (const std::string& attention : SelfAttentions()) {
    SCOPED_TRACE(attention);
    const auto model = Make(kFastEncoder, FastArguments(attention));
    ExpectTheSameInMixes(*model, 6, [&](int64_t length, bool masked) {
      return Rows(length, masked, WidthOf(*model));
    });
  }
}

TEST_F(FastEncoder, GivesSequencesOfManyBlocksWhatTheyHaveBesideShortOnes) {
  for (const std::string& attention : SelfAttentions()) {
    SCOPED_TRACE(attention);
    const auto model = Make(kFastEncoder, FastArguments(attention));
    for (const bool masked : {false, true}) {
      std::vector<Item> items;
      for (const int64_t length : {300, 3, 128, 129, 40}) {
        items.push_back(Rows(length, masked, WidthOf(*model)));
      }
      ExpectTheSameAloneAndTogether(*model, items);
    }
  }
}

TEST_F(FastEncoder, HidesKeysAsIfTheSequenceEndedBeforeThem) {
  for (const std::string& attention : SelfAttentions()) {
    if (attention.find("stabilize") != std::string::npos) continue;  // it looks at all keys
    SCOPED_TRACE(attention);
    const auto model = Make(kFastEncoder, FastArguments(attention));
    const Item whole = Rows(12, false, WidthOf(*model));
    Item start;
    start.inputs["x"] = whole.inputs.at("x").Rows(0, 9);
    Item masked = whole;
    masked.inputs["length_mask"] = MaskOf(12, 0, 9);
    EXPECT_LT(LargestDifference(Compute(*model, {masked})[0].at("y").Rows(0, 9),
                                Compute(*model, {start})[0].at("y")),
              kTolerance);
  }
}

TEST_F(FastEncoder, TakesTheArgumentsOfAFeatureMapBesideItsNameToo) {
  const std::string linear = R"("attention_type": "linear", )";
  const std::string directory =
      Directory(kFastEncoder, FastArguments(linear + kFavor + R"(, "softmax_temp": 0.3})"));
  const Item item = Rows(9, false);
  const Tensor rows = Compute(*Load(directory), {item})[0].at("y");
  Write(directory, "config.json",
        R"({"architecture": "fast_transformers.TransformerEncoder", "params": )" +
            FastArguments(linear + R"("feature_map": "Favor", "n_dims": 10, "softmax_temp": 0.3)") +
            "}");
  EXPECT_EQ(LargestDifference(Compute(*Load(directory), {item})[0].at("y"), rows), 0);
}

TEST_F(FastEncoder, WarnsOfFeaturesThatThePackageDrawsAnew) {
  const std::string linear = R"("attention_type": "linear", )";
  EXPECT_THAT(Warnings(linear + kFavor + "}"), ElementsAre(HasSubstr("deterministic_eval")));
  EXPECT_THAT(Warnings(linear + kFavor + R"(, "deterministic_eval": true})"), IsEmpty());
  EXPECT_THAT(Warnings(R"("attention_type": "linear")"), IsEmpty());
  EXPECT_THAT(Warnings(kFavor + std::string("}")), IsEmpty());  // attention is full
}

TEST_F(FastEncoder, RefusesWhatThePackageCannotComputeByName) {
  EXPECT_THAT(Error(R"("attention_type": "reformer")"),
              HasSubstr("expected one of full, linear, causal-linear, local"));
  EXPECT_THAT(Error(R"("attention_type": "local")"), HasSubstr("local_context"));
  EXPECT_THAT(Error(R"("activation": "tanh")"), HasSubstr("expected one of relu, gelu"));
  EXPECT_THAT(Error(R"("feature_map": "Favour")"), HasSubstr("expected one of elu"));
  EXPECT_THAT(Error(R"("feature_map": {"name": "Favor", "n_dims": 1})"), HasSubstr("at least 2"));
  EXPECT_THAT(Error(R"("feature_map": {"name": "SmoothedRandomFourierFeatures", "n_dims": 2})"),
              HasSubstr("at least 3"));
  EXPECT_THAT(Error(R"("feature_map": {"name": "elu", "stabilize": true})"),
              HasSubstr("stabilize"));
  EXPECT_THAT(Error(R"("n_dims": 12)"), HasSubstr("n_dims"));
}

TEST_F(FastEncoder, IsCausalByTheMaskOfItsCall) {
  const std::string directory = Directory(kFastEncoder, FastArguments(R"("activation": "gelu")"));
  const auto with = [&](const std::string& type, const std::string& mask) {
    Write(directory, "config.json",
          R"({"architecture": "fast_transformers.TransformerEncoder", "params": )" +
              FastArguments(R"("activation": "gelu", "attention_type": ")" + type + "\"") +
              R"(, "call": {"attn_mask": ")" + mask + "\"}}");
    return LoadModel(directory, {});
  };
  const auto causal = with("full", "TriangularCausalMask");
  ASSERT_TRUE(causal.ok()) << causal.status();
  const Item item = Rows(10, false);
  Item start;
  start.inputs["x"] = item.inputs.at("x").Rows(0, 6);
  EXPECT_LT(LargestDifference(Compute(**causal, {item})[0].at("y").Rows(0, 6),
                              Compute(**causal, {start})[0].at("y")),
            kTolerance);
  EXPECT_THAT(with("linear", "TriangularCausalMask").status(),
              IsStatus(absl::StatusCode::kInvalidArgument, "\"causal-linear\" is causal"));
}

class FastDecoder : public ModelFixture {
 protected:
  Item Rows(int64_t length, bool masked) {
    Item item = Floats(length, 12);
    const int64_t memory = Any(1, kLongestInput);
    item.inputs["memory"] = RandomFloats({memory, 15});
    if (masked) {
      item.inputs["x_length_mask"] = RandomMask(length);
      item.inputs["memory_length_mask"] = RandomMask(memory);
    }
    return item;
  }
};

TEST_F(FastDecoder, GivesTheSameRowsAloneAndInEveryPadding) {
  for (const std::string self : {"full", "linear", "causal-linear", "local"}) {
    for (const std::string cross : {"full", "linear", "causal-linear", "local"}) {
      SCOPED_TRACE(self + " and " + cross);
      const auto model =
          Make(kFastDecoder,
               FastArguments(R"("local_context": 6, "cross_n_heads": 2, "cross_value_dimensions": 6,
                           "cross_model_dimensions": 15, "self_attention_type": ")" +
                             self + R"(", "cross_attention_type": ")" + cross + "\""));
      ExpectTheSameInMixes(*model, 5,
                           [&](int64_t length, bool masked) { return Rows(length, masked); });
    }
  }
}

TEST_F(FastDecoder, WithAFeatureMapHasOneWidthOfQueries) {
  EXPECT_THAT(InitError(kFastDecoder,
                        FastArguments(R"("cross_attention_type": "linear", "feature_map": "Favor",
                                         "cross_query_dimensions": 5)")),
              HasSubstr("expected query_dimensions = 4"));
}

}  // namespace
}  // namespace linserve
