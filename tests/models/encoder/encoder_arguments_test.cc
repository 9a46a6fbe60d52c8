#include <gtest/gtest.h>

#include "models/encoder/encoder.h"
#include "models/model_fixture.h"

namespace linserve {
namespace {

class EncoderArgumentsTest : public ModelFixture {
 protected:
  using ModelFixture::Init;
  std::string Init(const std::string& params) { return Init("linserve.Encoder", params); }

  static std::string ErrorOf(const std::string& params) {
    return InitError("linserve.Encoder", params);
  }
};

TEST_F(EncoderArgumentsTest, RefusesSequencesLongerThanItTakes) {
  for (const std::string& params :
       {std::string(R"({"attention": "linformer", "dim": 8, "depth": 1, "heads": 2,
                        "seq_len": 6, "k": 4})"),
        std::string(R"({"dim": 8, "depth": 1, "heads": 2, "max_seq_len": 6})"),
        std::string(R"({"attention": "linformer", "dim": 8, "depth": 1, "heads": 2,
                        "seq_len": 9, "k": 4, "positions": "learned", "max_seq_len": 6})")}) {
    auto model = Load(Init(params));
    EXPECT_EQ(model->info().signature.limits.size(), 1U) << params;
    EXPECT_TRUE(Validate(model->info().signature, Floats(6, 8)).ok());
    const absl::Status status = Validate(model->info().signature, Floats(7, 8));
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  }
}

TEST_F(EncoderArgumentsTest, NamesImpossibleArgumentsWithTheirValueAndWhatIsAllowed) {
  struct Case {
    std::string params;
    std::vector<std::string> parts;
  };
  const std::vector<Case> cases = {
      {R"({"attention": "performer", "dim": 8, "depth": 1})",
       {"\"attention\"", "\"performer\"", "softmax, efficient, elu, taylor, linformer"}},
      {R"({"dim": 10, "depth": 1, "heads": 4})", {"\"dim\"", "10", "multiple of heads = 4"}},
      {R"({"dim": 8, "depth": 0})", {"\"depth\"", "0", "1 to 4096"}},
      {R"({"depth": 1})", {"\"dim\"", "missing", "positive"}},
      {R"({"attention": "linformer", "dim": 8, "depth": 1})", {"\"seq_len\"", "missing"}},
      {R"({"dim": 8, "depth": 1, "positions": "axial"})",
       {"\"positions\"", "\"axial\"", "none, learned, sinusoidal, rotary"}},
      {R"({"dim": 8, "depth": 1, "positions": "learned"})", {"\"max_seq_len\"", "missing"}},
      {R"({"dim": 9, "depth": 1, "heads": 1, "positions": "sinusoidal"})",
       {"\"dim\"", "9", "even"}},
      {R"({"dim": 8, "depth": 1, "dim_head": 3, "positions": "rotary"})",
       {"\"dim_head\"", "3", "even"}},
      {R"({"dim": 8, "depth": 1, "heads": 8, "positions": "rotary"})", {"\"dim\"", "8", "even"}},
      {R"({"dim": 8, "depth": 1, "normalize": "yes"})",
       {"\"normalize\"", "\"yes\"", "true or false"}},
      {R"({"dim": 8, "depth": 1, "layers": 2})", {"\"layers\"", "unknown"}}};
  for (const Case& wrong : cases) {
    const std::string error = ErrorOf(wrong.params);
    for (const std::string& part : wrong.parts) {
      EXPECT_NE(error.find(part), std::string::npos) << wrong.params << ": " << error;
    }
  }
}

TEST_F(EncoderArgumentsTest, HasTheParametersAndOperationsThatItsLayersAddUpTo) {
  const auto report = [&](const std::string& attention, const std::string& more) {
    return *InspectModel(Init(R"({"attention": ")" + attention + R"(",
        "dim": 32, "depth": 3, "heads": 4, "ff_mult": 2, "num_tokens": 100, "max_seq_len": 50,
        "positions": "learned")" +
                              more + "}"));
  };
  // Embeddings and positions; two norms, q, k, v, out with bias, and the feed-forward; last norm.
  const int64_t layer = 2 * 64 + 3 * 32 * 32 + 32 * 32 + 32 + (32 * 64 + 64) + (64 * 32 + 32);
  const int64_t parameters = 100 * 32 + 50 * 32 + 3 * layer + 64;
  const double linears = 2 * (4 * 32 * 32 + 2 * 32 * 64);
  const ModelReport softmax = report("softmax", "");
  EXPECT_EQ(softmax.info.parameters, parameters);
  EXPECT_EQ(softmax.length, 50);
  // Each row takes scores of 50 keys and as many values, each 2·32 over all heads.
  EXPECT_NEAR(softmax.flops_per_token, 3 * (linears + 2 * 50 * 2 * 32), 1e-6);
  const ModelReport linformer = report("linformer", R"(, "seq_len": 50, "k": 10)");
  EXPECT_EQ(linformer.info.parameters, parameters + 3 * 2 * 50 * 10);
  // Keys and values go into ten slots, and scores and values come of ten slots: each takes 2·10·32.
  EXPECT_NEAR(linformer.flops_per_token, 3 * (linears + 4 * 2 * 10 * 32), 1e-6);
  // Each row goes into a state of 8·8 a head and out of it; normalising takes little more.
  const double state = 2 * 2 * 4 * 8 * 8;
  for (const char* attention : {"efficient", "elu", "taylor"}) {
    const double flops = report(attention, "").flops_per_token;
    EXPECT_GT(flops, 3 * (linears + state));
    EXPECT_LT(flops, 3 * (linears + state) * 1.05);
  }
}

}  // namespace
}  // namespace linserve
