#include "engine/serving_options.h"

#include <nlohmann/json.hpp>
#include <set>

#include "support/test_files.h"

namespace linserve {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;

absl::Status Set(ServingOptions& options, const json& values) {
  OptionTable table;
  options.Bind(table);
  return table.SetAll(values, "config.json");
}

TEST(ServingOptions, AreByDefaultTheDefaultsOfTheEngine) {
  const EngineOptions made = ServingOptions().ForEngine(ServingOptions().Replicas(0));
  const EngineOptions expected;
  EXPECT_EQ(made.padding, expected.padding);
  EXPECT_THAT(made.buckets, IsEmpty());
  EXPECT_EQ(made.policy.max_sequences, expected.policy.max_sequences);
  EXPECT_EQ(made.policy.max_delay, expected.policy.max_delay);
  EXPECT_EQ(made.limits.max_sequences, expected.limits.max_sequences);
  EXPECT_EQ(made.limits.max_tokens, expected.limits.max_tokens);
  EXPECT_EQ(made.limits.max_bytes, expected.limits.max_bytes);
  EXPECT_EQ(made.replicas, ServingOptions().Replicas(0).replicas);
  EXPECT_EQ(made.warmup, expected.warmup);
}

TEST(ServingOptions, GiveABatchAsManyTokensAsItsThreadsTake) {
  ServingOptions options;
  ASSERT_TRUE(Set(options, {{"threads", 3}}).ok());
  EXPECT_EQ(options.ForEngine(options.Replicas(0)).policy.max_tokens, 3 * 2048);
  ASSERT_TRUE(Set(options, {{"max_batch_tokens", 100}}).ok());
  EXPECT_EQ(options.ForEngine(options.Replicas(0)).policy.max_tokens, 100);
}

TEST(ServingOptions, KnowHowManyReplicasComputeApart) {
  const auto apart = [](int64_t replicas, int64_t threads, int64_t processors) {
    ServingOptions options;
    options.replicas = replicas;
    options.threads = threads;
    return options.ForEngine(options.Replicas(0, processors)).apart;
  };
  EXPECT_EQ(apart(0, 0, 8), 1);  // each may have all processors
  EXPECT_EQ(apart(8, 1, 8), 8);
  EXPECT_EQ(apart(8, 2, 8), 4);
  EXPECT_EQ(apart(2, 2, 8), 2);
  EXPECT_EQ(apart(2, 9, 8), 1);
}

TEST(ServingOptions, GiveABatchTheTokensOfTheProcessorsThatItHasWhileAllCompute) {
  ServingOptions options;
  EXPECT_EQ(options.Replicas(0, 8).batch_tokens, 4 * 2048);
  options.replicas = 8;
  EXPECT_EQ(options.Replicas(0, 8).batch_tokens, 2048);
  EXPECT_EQ(options.Replicas(0, 1).batch_tokens, 2048);
}

TEST(ServingOptions, CallSequencesLongByTheRowsThatKeepAllThreadsBusy) {
  ServingOptions options;
  ASSERT_TRUE(Set(options, {{"threads", 3}}).ok());
  EXPECT_EQ(options.ForEngine(options.Replicas(0)).policy.long_rows, 3 * 256);
  EXPECT_EQ(options.ForEngine(options.Replicas(1)).policy.long_rows, 65536);  // nothing overtakes
  ASSERT_TRUE(Set(options, {{"max_batch_tokens", 100}}).ok());
  EXPECT_EQ(options.ForEngine(options.Replicas(0)).policy.long_rows, 100);
}

struct PlanCase {
  int64_t replicas;
  int64_t threads;
  int64_t processors;
  int64_t expected_replicas;
  int64_t expected_threads;
  std::string reason;
};

TEST(ServingOptions, ShareTheProcessorsOut) {
  const std::vector<PlanCase> cases = {
      {0, 0, 1, 1, 1, "processors: 1, shared by the replicas"},
      {0, 0, 15, 2, 15, "processors: 15, shared by the replicas"},
      {0, 0, 32, 4, 32, "processors: 32, shared by the replicas"},
      {0, 0, 512, 16, 512, "processors: 512, shared by the replicas"},
      {0, 3, 8, 1, 3, "as configured"},
      {2, 0, 8, 2, 8, "processors: 8, shared by the replicas"},
      {4, 0, 2, 4, 2, "processors: 2, shared by the replicas"},
      {5, 7, 8, 5, 7, "as configured"},
  };
  for (const PlanCase& expected : cases) {
    ServingOptions options;
    options.replicas = expected.replicas;
    options.threads = expected.threads;
    const ReplicaPlan plan = options.Replicas(0, expected.processors);
    EXPECT_EQ(plan.replicas, expected.expected_replicas) << expected.reason;
    EXPECT_EQ(plan.threads, expected.expected_threads) << expected.reason;
    EXPECT_EQ(plan.reason, expected.reason);
    EXPECT_TRUE(options.ForEngine(plan).shared);
  }
}

TEST(ServingOptions, GiveEachDeviceAReplicaAndLargeBatches) {
  ServingOptions options;
  ReplicaPlan plan = options.Replicas(4, 64);
  EXPECT_EQ(plan.replicas, 4);
  EXPECT_EQ(plan.threads, 1);
  EXPECT_EQ(plan.reason, "devices: 4, a replica for each");
  EXPECT_EQ(options.ForEngine(plan).policy.max_tokens, 65536);
  EXPECT_FALSE(options.ForEngine(plan).shared);
  EXPECT_EQ(options.ForEngine(plan).policy.max_sequences, 2048);
  ASSERT_TRUE(Set(options, {{"replicas", 8}, {"threads", 2}, {"max_batch_tokens", 100}}).ok());
  plan = options.Replicas(4, 64);
  EXPECT_EQ(plan.replicas, 8);
  EXPECT_EQ(plan.threads, 2);
  EXPECT_EQ(plan.reason, "as configured");
  EXPECT_EQ(options.ForEngine(plan).policy.max_tokens, 100);
}

TEST(ServingOptions, AllReachTheEngine) {
  ServingOptions options;
  const json values = {
      {"padding", "bucket"},      {"buckets", {16, 64}},       {"max_batch_tokens", 1},
      {"max_batch_sequences", 2}, {"max_batch_delay_ms", 2.5}, {"max_queue_sequences", 3},
      {"max_queue_tokens", 4},    {"max_queue_bytes", 5},      {"replicas", 6},
      {"warmup", false}};
  ASSERT_TRUE(Set(options, values).ok());
  const EngineOptions made = options.ForEngine(options.Replicas(0));
  EXPECT_EQ(made.padding, Padding::kBucket);
  EXPECT_THAT(made.buckets, ElementsAre(16, 64));
  EXPECT_EQ(made.policy.max_tokens, 1);
  EXPECT_EQ(made.policy.max_sequences, 2);
  EXPECT_EQ(made.policy.max_delay, 2500us);
  EXPECT_EQ(made.limits.max_sequences, 3);
  EXPECT_EQ(made.limits.max_tokens, 4);
  EXPECT_EQ(made.limits.max_bytes, 5);
  EXPECT_EQ(made.replicas, 6);
  EXPECT_FALSE(made.warmup);
}

TEST(ServingOptions, OfAModelLeaveWhatTheyDoNotNameAsTheServerHasIt) {
  ServingOptions options;
  ASSERT_TRUE(Set(options, {{"pooling", "mean"}, {"replicas", 2}}).ok());
  ServingOptions of_model = options;
  ASSERT_TRUE(Set(of_model, {{"replicas", 3}}).ok());
  EXPECT_EQ(of_model.pooling, Pooling::kMean);
  EXPECT_EQ(of_model.replicas, 3);
  EXPECT_EQ(options.replicas, 2);
}

TEST(ServingOptions, OfEveryPaddingThatIsAllowedAreKnownToTheEngine) {
  std::set<std::optional<Padding>> made;
  for (const char* name : {"packed", "bucket", "fixed", "zeros"}) {
    ServingOptions options;
    ASSERT_TRUE(Set(options, {{"padding", name}}).ok());
    made.insert(options.ForEngine(options.Replicas(0)).padding);
  }
  EXPECT_EQ(made.size(), 4u);
  EXPECT_EQ(made.count(std::nullopt), 0U);
  EXPECT_EQ(ServingOptions().ForEngine({}).padding, std::nullopt);  // as is fastest
}

TEST(ServingOptions, RefuseWhatNoServerCanDo) {
  const std::vector<json> cases = {{{"padding", "tight"}},   {{"dtype", "f8"}},
                                   {{"pooling", "sum"}},     {{"max_batch_tokens", -1}},
                                   {{"buckets", {0, 16}}},   {{"buckets", {64, 16}}},
                                   {{"replicas", -1}},       {{"max_batch_delay_ms", -1}},
                                   {{"max_queue_bytes", 0}}, {{"max_queue_sequences", 0}},
                                   {{"warmup", "yes"}},      {{"thread", 1}}};
  for (const json& values : cases) {
    ServingOptions options;
    EXPECT_THAT(Set(options, values), IsInvalid("config.json: ")) << values;
  }
}

}  // namespace
}  // namespace linserve
