#include "client/load/load_inputs.h"

#include <gtest/gtest.h>

#include "core/sequence/signature.h"
#include "core/workload/lengths.h"

namespace linserve {
namespace {

ModelDescription TwoInputModel() {
  ModelDescription model;
  model.name = "m";
  model.version = 2;
  model.signature.inputs = {
      {"x", InputKind::kToken, {Axis::Ragged('n')}, false, 10},
      {"context", InputKind::kFloat, {Axis::Ragged('m'), Axis::Fixed(4)}, false, 0},
      {"mask", InputKind::kMask, {Axis::Ragged('n')}, false, 0},
      {"extra", InputKind::kFloat, {Axis::Ragged('n')}, true, 0}};
  model.signature.limits = {{'n', 32, ""}};
  return model;
}

TEST(LoadInputs, AreValidForTheModel) {
  const ModelDescription model = TwoInputModel();
  LoadInputOptions options;
  options.requests = 20;
  options.sequences = 3;
  const auto calls = MakeLoadCalls(model, *LengthDistribution::Parse("uniform:1,32"), options);
  ASSERT_TRUE(calls.ok()) << calls.status();
  EXPECT_EQ(calls->size(), 20U);
  for (const EmbedCall& call : *calls) {
    EXPECT_EQ(call.model, "m");
    EXPECT_EQ(call.version, 0);
    ASSERT_EQ(call.sequences.size(), 3U);
    for (const NamedSequence& sequence : call.sequences) {
      const absl::Status valid = Validate(model.signature, {sequence.inputs, {}});
      EXPECT_TRUE(valid.ok()) << valid;
      EXPECT_EQ(sequence.inputs.count("extra"), 0U);
    }
  }
}

TEST(LoadInputs, AreFewerIfTheyAreLarge) {
  LoadInputOptions options;
  options.requests = 1000;
  options.max_bytes = 10000;
  const auto calls = MakeLoadCalls(TwoInputModel(), LengthDistribution::Fixed(32), options);
  ASSERT_TRUE(calls.ok());
  EXPECT_LT(calls->size(), 20U);
}

TEST(LoadInputs, LongerThanTheModelTakesAreRefused) {
  const auto calls = MakeLoadCalls(TwoInputModel(), LengthDistribution::Fixed(33), {});
  EXPECT_EQ(calls.status(),
            absl::InvalidArgumentError("lengths 'fixed:33' go up to 33, but model 'm' takes at "
                                       "most 32 on axis n of 'x'"));
}

}  // namespace
}  // namespace linserve
