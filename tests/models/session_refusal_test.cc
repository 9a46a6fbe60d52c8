#include <gmock/gmock.h>

#include "models/fast_transformers/fixture.h"
#include "models/performer_pytorch/fixture.h"
#include "models/session_fixture.h"

namespace linserve {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class SessionRefusalTest : public SessionFixture {
 protected:
  static constexpr const char* kElu =
      R"({"dim": 8, "depth": 1, "heads": 2, "causal": true, "attention": "elu",
          "max_seq_len": 20})";

  // Says why a model has no sessions.
  std::string WhyNot(const std::string& architecture, const std::string& params,
                     const std::string& wrapper = "null") {
    const auto model = Load(Init(architecture, params, 1, wrapper));
    EXPECT_EQ(model->info().sessions, nullptr);
    EXPECT_EQ(model->info().session_bytes, 0);
    return model->info().no_sessions;
  }

  std::string WhyNoEncoder(const std::string& more) {
    return WhyNot("linserve.Encoder", R"({"dim": 8, "depth": 1, "heads": 2, )" + more + "}");
  }

  std::string WhyNoLat(const std::string& more, const std::string& wrapper = "null") {
    return WhyNot(kLatStack,
                  R"({"dim": 8, "depth": 1, "max_seq_len": 16, "heads": 2,
                      "local_attn_window_size": 4, )" +
                      more + "}",
                  wrapper);
  }

  static absl::Status Start(Model& model, const std::vector<Item>& items) {
    std::vector<const Item*> pointers;
    for (const Item& item : items) pointers.push_back(&item);
    return model.Start(Padder(model.info().signature, Padding::kPacked).Pad(pointers)).status();
  }

  std::unique_ptr<Model> model_ = Load(Init("linserve.Encoder", kElu));
};

TEST_F(SessionRefusalTest, ModelsThatNeedMoreThanEarlierRowsSayWhyThereAreNoSessions) {
  EXPECT_THAT(WhyNoEncoder(R"("attention": "elu")"), HasSubstr("causal is false"));
  EXPECT_THAT(WhyNoEncoder(R"("attention": "softmax", "causal": true)"),
              HasSubstr("needs every earlier key"));
  EXPECT_THAT(WhyNoEncoder(R"("attention": "linformer", "seq_len": 16, "causal": true)"),
              HasSubstr("projects the whole input"));
  EXPECT_THAT(WhyNoLat(R"("heads": 2)"), HasSubstr("causal is false"));
  EXPECT_THAT(WhyNoLat(R"("linformer_settings": {"k": 4})"), HasSubstr("linformer_settings"));
  EXPECT_THAT(WhyNoLat(R"("causal": true, "attend_axially": true)"), HasSubstr("attend_axially"));
  EXPECT_THAT(WhyNoLat(R"("causal": true, "receives_context": true,
                         "context_linformer_settings": {"seq_len": 9, "k": 4})"),
              HasSubstr("context_linformer_settings"));
  EXPECT_THAT(WhyNoLat(R"("causal": true, "n_local_attn_heads": 1)", kPadLeft),
              HasSubstr("on the left"));
  EXPECT_THAT(WhyNot(kFastEncoder, FastArguments(R"("attention_type": "linear")")),
              HasSubstr("not causal"));
  EXPECT_THAT(WhyNot(kFastEncoder, FastArguments(R"("attention_type": "causal-linear",
                                      "feature_map": {"name": "Favor", "stabilize": true})")),
              HasSubstr("stabilize"));
  EXPECT_THAT(WhyNot(kFastDecoder, FastArguments(R"("self_attention_type": "causal-linear")")),
              HasSubstr("attention to the memory is not \"linear\""));
  EXPECT_THAT(WhyNot("linformer.Linformer", R"({"dim": 8, "seq_len": 8, "depth": 1})"),
              HasSubstr("along its length"));
  EXPECT_THAT(WhyNot("linformer_pytorch.LinformerLM",
                     R"({"num_tokens": 9, "input_size": 8, "channels": 8, "causal": true})"),
              HasSubstr("whole input"));
  EXPECT_THAT(WhyNot(kPerformer, PerformerStack(R"("causal": true, "local_attn_heads": [3, 1])")),
              HasSubstr("the largest key of the whole sequence"));
  EXPECT_THAT(WhyNot("math.kernel", R"({"causal": true})"), HasSubstr("with each request"));
}

TEST_F(SessionRefusalTest, AModelWithoutSessionsSavesNone) {
  const auto whole = Load(Init("linformer.Linformer", R"({"dim": 8, "seq_len": 8, "depth": 1})"));
  const absl::Status saved = whole->Save(*New(*model_)).status();
  EXPECT_EQ(saved.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(saved.message(), HasSubstr("linformer.Linformer has no sessions"));
}

TEST_F(SessionRefusalTest, ASequenceMayNotBecomeLongerThanTheModelTakes) {
  const Item item = Floats(20, 8);
  const auto session = New(*model_);
  Feed(*model_, item, {15}, session);
  EXPECT_TRUE(ValidateChunk(model_->info().signature, Chunk(item, 0, 5, session)).ok());
  const Item longer = Chunk(item, 0, 6, session);
  for (const absl::Status& status :
       {ValidateChunk(model_->info().signature, longer), Start(*model_, {longer})}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), AllOf(HasSubstr("6 rows"), HasSubstr("15"), HasSubstr("20")));
  }
}

TEST_F(SessionRefusalTest, AChunkHasNoOptionalInputs) {
  Item item = Floats(3, 8);
  item.session = New(*model_);
  item.inputs["input_mask"] = RandomMask(3);
  EXPECT_THAT(ValidateChunk(model_->info().signature, item).message(), HasSubstr("input_mask"));
  EXPECT_EQ(Start(*model_, {item}).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(SessionRefusalTest, ASessionHasOneChunkInABatch) {
  Item item = Floats(3, 8);
  item.session = New(*model_);
  EXPECT_THAT(Start(*model_, {item, item}).message(), HasSubstr("two chunks"));
}

TEST_F(SessionRefusalTest, ASessionIsOfOneModelAndItsWeights) {
  const auto other = Load(Init("linserve.Encoder", kElu, /*seed=*/2));
  Item item = Floats(3, 8);
  item.session = New(*other);
  EXPECT_THAT(Start(*model_, {item}).message(), HasSubstr("another model"));
  EXPECT_THAT(model_->Save(*item.session).status().message(), HasSubstr("another model"));
  const auto restored = model_->info().sessions->Restore(*other->Save(*item.session));
  EXPECT_EQ(restored.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(restored.status().message(), HasSubstr("weights"));
}

TEST_F(SessionRefusalTest, ASavedSessionThatWasAlteredOrCutIsRefused) {
  const auto session = New(*model_);
  Feed(*model_, Floats(5, 8), {5}, session);
  const std::string blob = *model_->Save(*session);
  ASSERT_TRUE(model_->info().sessions->Restore(blob).ok());
  for (size_t i = 0; i < blob.size(); ++i) {
    std::string altered = blob;
    altered[i] = static_cast<char>(altered[i] ^ 1);
    EXPECT_EQ(model_->info().sessions->Restore(altered).status().code(),
              absl::StatusCode::kInvalidArgument)
        << i;
    EXPECT_EQ(model_->info().sessions->Restore(blob.substr(0, i)).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
  EXPECT_THAT(model_->info().sessions->Restore("other bytes").status().message(),
              HasSubstr("no saved session"));
  EXPECT_THAT(model_->info().sessions->Restore(blob.substr(0, 30)).status().message(),
              HasSubstr("cut"));
  EXPECT_THAT(model_->info().sessions->Restore(blob + "x").status().message(),
              HasSubstr("checksum"));
  std::string newer = blob;
  newer[8] = 9;
  EXPECT_THAT(model_->info().sessions->Restore(newer).status().message(), HasSubstr("version 9"));
}

TEST_F(SessionRefusalTest, ASessionOfOneTypeIsNotContinuedInAnother) {
  SKIP_WITHOUT_TYPE("bf16");
  const std::string directory = Init("linserve.Encoder", kElu);
  const auto blob = Load(directory)->Save(*New(*Load(directory)));
  const auto bf16 = Load(directory, {.dtype = "bf16"});
  EXPECT_THAT(bf16->info().sessions->Restore(*blob).status().message(), HasSubstr("dtype"));
}

}  // namespace
}  // namespace linserve
