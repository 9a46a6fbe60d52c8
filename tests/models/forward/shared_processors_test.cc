#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "models/model_fixture.h"

namespace linserve {
namespace {

// Each of these splits its work in another way.
struct SharedCase {
  const char* architecture;
  const char* params;
};
constexpr SharedCase kSharedCases[] = {
    {"linformer.LinformerLM",
     R"({"num_tokens": 30, "dim": 32, "seq_len": 2048, "depth": 2, "k": 16, "heads": 4})"},
    {"linear_attention_transformer.LinearAttentionTransformerLM",
     R"({"num_tokens": 30, "dim": 32, "max_seq_len": 2048, "depth": 2, "heads": 4})"},
    {"linear_attention_transformer.LinearAttentionTransformerLM",
     R"({"num_tokens": 30, "dim": 32, "max_seq_len": 2048, "depth": 2, "heads": 4, "causal": true})"},
    {"linserve.Encoder",
     R"({"num_tokens": 30, "dim": 32, "depth": 2, "heads": 4, "max_seq_len": 2048, "attention": "softmax"})"},
};

class SharedProcessorsTest : public ModelFixture {
 protected:
  void ExpectTheSameBesideOthers(const std::string& directory, const std::string& dtype);
};

void SharedProcessorsTest::ExpectTheSameBesideOthers(const std::string& directory,
                                                     const std::string& dtype) {
  const ModelFactory factory = ReplicasOf(directory, {.dtype = dtype}, {"cpu"});
  auto model = factory(0);
  ASSERT_TRUE(model.ok()) << model.status();
  std::vector<std::vector<Item>> batches;
  std::vector<std::vector<TensorMap>> expected;
  for (int i = 0; i < 12; ++i) {
    std::vector<Item> items;
    const int64_t count = i % 3 == 0 ? 1 : Any(2, 12);
    for (int64_t j = 0; j < count; ++j) {
      items.push_back(Tokens(Any(1, i % 3 == 0 ? 2048 : 300), 30));
    }
    expected.push_back(Compute(**model, items));
    batches.push_back(std::move(items));
  }
  std::vector<std::thread> workers;
  for (int64_t worker = 0; worker < 4; ++worker) {
    workers.emplace_back([&, worker] {
      auto own = factory(worker);
      ASSERT_TRUE(own.ok()) << own.status();
      for (size_t i = 0; i < 2 * batches.size(); ++i) {
        const size_t which = (i + 3 * static_cast<size_t>(worker)) % batches.size();
        const auto rows = Compute(**own, batches[which]);
        for (size_t j = 0; j < rows.size(); ++j) {
          EXPECT_LT(LargestDifference(rows[j], expected[which][j]), dtype == "f32" ? 1e-5 : 0.05)
              << dtype << ", batch " << which << ", sequence " << j;
        }
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
}

// Passes begin and end beside each other all the time, so that helpers come and go within them.
TEST_F(SharedProcessorsTest, EachPassHasTheRowsThatItHasAlone) {
  for (const SharedCase& one : kSharedCases) {
    const std::string directory = Directory(one.architecture, one.params);
    for (const std::string& dtype : TypesOfCpu()) {
      SCOPED_TRACE(std::string(one.params) + " in " + dtype);
      ExpectTheSameBesideOthers(directory, dtype);
    }
  }
}

}  // namespace
}  // namespace linserve
