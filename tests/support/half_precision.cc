#include "support/half_precision.h"

#include <gmock/gmock.h>

#include <cmath>
#include <utility>
#include <vector>

#include "client/library/embedding_client.h"
#include "core/tensor/comparison.h"
#include "support/programs.h"

namespace linserve {
namespace {

struct TriedModel {
  std::string architecture;
  std::string params;
  int64_t dim;
};

std::vector<TriedModel> LinearModels() {
  const std::string lat = "linear_attention_transformer.LinearAttentionTransformer";
  const std::string common = R"("dim": 128, "depth": 2, "heads": 2, "max_seq_len": 4096)";
  const std::string encoder = R"("dim": 64, "depth": 2, "heads": 2, "attention": "elu")";
  return {
      {lat, "{" + common + "}", 128},
      {lat, "{" + common + R"(, "causal": true})", 128},
      {lat,
       "{" + common + R"(, "causal": true, "n_local_attn_heads": 1, "local_attn_window_size": 32,
                          "blindspot_size": 16})",
       128},
      {"linserve.Encoder", "{" + encoder + "}", 64},
      {"linserve.Encoder", "{" + encoder + R"(, "causal": true})", 64},
  };
}

// Linformers with heads of each width that there is a kernel for, and one that fills none of them;
// their slots are no whole vectors.
std::vector<TriedModel> Linformers() {
  std::vector<TriedModel> models;
  for (const int64_t dim_head : {32, 64, 96, 128, 40}) {
    const std::string dim = std::to_string(2 * dim_head);
    models.push_back(
        {"linformer.Linformer",
         R"({"dim": )" + dim + R"(, "seq_len": 4096, "depth": 2, "heads": 2, "k": 60})",
         2 * dim_head});
  }
  return models;
}

// Serves models of random weights, each of which is asked for one sequence of `length` rows.
class HalfPrecision {
 public:
  HalfPrecision(std::vector<TriedModel> models, int64_t length)
      : models_(std::move(models)), length_(length) {
    for (size_t i = 0; i < models_.size(); ++i) {
      const Outcome made =
          RunLinserve({"init", "--architecture", models_[i].architecture, "--params",
                       models_[i].params, "--seed", "1", "--output", repository_.File(Name(i))});
      EXPECT_EQ(made.code, 0) << made.err;
    }
  }

  // Returns each model's rows.
  std::vector<Tensor> Rows(const std::string& device, const std::string& dtype,
                           const std::string& padding) const {
    // Recording passes takes a simulated device minutes.
    const std::string warmup = device.starts_with("cuda") ? "true" : "false";
    const RunningServer server(repository_.File("."), {"--device", device, "--dtype", dtype,
                                                       "--padding", padding, "--warmup", warmup});
    EXPECT_TRUE(server.ready()) << dtype << ", " << padding;
    EmbeddingClient client(server.client_options());
    std::vector<Tensor> rows;
    for (size_t i = 0; i < models_.size(); ++i) {
      EmbedCall call;
      call.model = Name(i);
      call.sequences.push_back({"", {{"x", Sequence(models_[i].dim)}}});
      const auto results = client.Embed(call);
      if (!results.ok() || !results->at(0).status.ok()) {
        ADD_FAILURE() << models_[i].params << ": "
                      << (results.ok() ? results->at(0).status : results.status());
        return {};
      }
      rows.push_back(results->at(0).outputs.at("y"));
    }
    return rows;
  }

  void ExpectNearlyAsOnTheCpu(const std::string& device) const {
    const std::vector<Tensor> exact = Rows("cpu", "f32", "packed");
    for (const char* dtype : {"bf16", "f16"}) {
      // Sums over thousands of rows make large scores, of which BF16 keeps 8 bits.
      const double least = dtype == std::string("bf16") && length_ > 1000 ? 0.99 : 0.999;
      // A GPU replays short packed sequences, where it could record the model's passes; padded ones
      // it does not.
      for (const char* padding : {"packed", "bucket"}) {
        const std::vector<Tensor> computed = Rows(device, dtype, padding);
        ASSERT_EQ(computed.size(), exact.size());
        for (size_t i = 0; i < exact.size(); ++i) {
          const auto comparison = Compare(computed[i], exact[i]);
          ASSERT_TRUE(comparison.ok()) << comparison.status();
          EXPECT_GE(comparison->smallest_cosine, least)
              << models_[i].params << ", " << dtype << ", " << padding;
        }
      }
    }
  }

 private:
  static std::string Name(size_t model) { return "model-" + std::to_string(model); }

  Tensor Sequence(int64_t dim) const {
    std::vector<float> values;
    for (int64_t i = 0; i < length_ * dim; ++i) {
      values.push_back(std::sin(static_cast<float>(i * i % 9973)));
    }
    return Tensor::FromFloats({length_, dim}, values);
  }

  std::vector<TriedModel> models_;
  int64_t length_;
  TempDir repository_;
};

}  // namespace

void ExpectLinearAttentionNearlyAsOnTheCpu(const std::string& device, int64_t length) {
  HalfPrecision(LinearModels(), length).ExpectNearlyAsOnTheCpu(device);
}

void ExpectLinformersNearlyAsOnTheCpu(const std::string& device, int64_t length) {
  HalfPrecision(Linformers(), length).ExpectNearlyAsOnTheCpu(device);
}

}  // namespace linserve
