#include "client/load/load_sweep.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>

namespace linserve {
namespace {

// Returns a step of so many requests that were answered, that failed, and with a faulty sequence.
SweepStep StepOf(int answered, int failed, int faulty = 0) {
  SweepStep step;
  SequenceResult fault;
  fault.status = absl::InternalError("a fault");
  for (int i = 0; i < answered; ++i) step.report.Record(absl::OkStatus(), {SequenceResult{}});
  for (int i = 0; i < failed; ++i) step.report.Record(absl::UnavailableError("gone"), {});
  for (int i = 0; i < faulty; ++i) step.report.Record(absl::OkStatus(), {fault});
  return step;
}

TEST(LoadSweep, FailsWhereMoreThanHalfOfItsRequestsDo) {
  EXPECT_EQ(FailureOf({StepOf(2, 0), StepOf(0, 2)}), "");
  EXPECT_EQ(FailureOf({StepOf(2, 0), StepOf(0, 3)}), "3 of 5 requests failed");
  EXPECT_EQ(FailureOf({StepOf(1, 0, 1)}), "");
  EXPECT_EQ(FailureOf({StepOf(1, 0, 2)}), "2 of 3 requests failed");
  EXPECT_EQ(FailureOf({StepOf(0, 0)}), "no request was answered");
}

TEST(LoadSweep, HasNoKneeWhereNothingWasAnswered) {
  const std::vector<SweepStep> steps = {StepOf(0, 2), StepOf(0, 3)};
  EXPECT_EQ(KneeOf(steps), std::nullopt);
  EXPECT_EQ(ToText(steps, {}).find("knee"), std::string::npos) << ToText(steps, {});
  EXPECT_TRUE(JsonOf(steps, {})["knee"].is_null());
}

}  // namespace
}  // namespace linserve
