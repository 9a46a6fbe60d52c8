#include "support/half_precision.h"

#include <gmock/gmock.h>

#include <cmath>
#include <utility>
#include <vector>

#include "core/files/safetensors.h"
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

void ExpectNearlyAsOnTheCpu(const std::vector<TriedModel>& models, const std::string& device,
                            int64_t length) {
  for (const TriedModel& model : models) {
    SCOPED_TRACE(model.params);
    const TempDir directory;
    const Outcome made =
        RunLinserve({"init", "--architecture", model.architecture, "--params", model.params,
                     "--seed", "1", "--output", directory.File("model")});
    ASSERT_EQ(made.code, 0) << made.err;
    std::vector<float> values;
    for (int64_t i = 0; i < length * model.dim; ++i) {
      values.push_back(std::sin(static_cast<float>(i * i % 9973)));
    }
    const std::string input = directory.File("x.safetensors");
    const Tensor x = Tensor::FromFloats({1, length, model.dim}, values);
    ASSERT_TRUE(WriteSafetensors(input, {{"input.x", x}}).ok());
    const auto compute = [&](const std::string& on, const std::string& dtype,
                             const std::string& padding) {
      const std::string output = directory.File(dtype + padding);
      const Outcome run =
          RunLinserve({"run", "--model", directory.File("model"), "--input", input, "--output",
                       output, "--device", on, "--dtype", dtype, "--padding", padding});
      EXPECT_EQ(run.code, 0) << run.err;
      return ReadSafetensors(output);
    };
    const auto exact = compute("cpu", "f32", "packed");
    ASSERT_TRUE(exact.ok());
    for (const char* dtype : {"bf16", "f16"}) {
      // Short packed sequences are passes that were recorded, where the model has them; padded ones
      // are not.
      for (const char* padding : {"packed", "bucket"}) {
        const auto computed = compute(device, dtype, padding);
        ASSERT_TRUE(computed.ok());
        const auto comparison =
            Compare(computed->tensors.at("output.y"), exact->tensors.at("output.y"));
        ASSERT_TRUE(comparison.ok()) << comparison.status();
        // Sums over thousands of rows make large scores, of which BF16 keeps 8 bits.
        const bool rough = std::string(dtype) == "bf16" && length > 1000;
        const double least = rough ? 0.99 : 0.999;
        EXPECT_GE(comparison->smallest_cosine, least) << dtype << ", " << padding;
      }
    }
  }
}

}  // namespace

void ExpectLinearAttentionNearlyAsOnTheCpu(const std::string& device, int64_t length) {
  ExpectNearlyAsOnTheCpu(LinearModels(), device, length);
}

void ExpectLinformersNearlyAsOnTheCpu(const std::string& device, int64_t length) {
  ExpectNearlyAsOnTheCpu(Linformers(), device, length);
}

}  // namespace linserve
