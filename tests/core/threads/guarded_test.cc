#include "core/threads/guarded.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <stdexcept>
#include <string>

#include "absl/status/statusor.h"

namespace linserve {
namespace {

TEST(Guarded, GivesBackWhatTheFunctionGives) {
  const absl::StatusOr<std::unique_ptr<int>> value = Guarded(
      "a sum", []() -> absl::StatusOr<std::unique_ptr<int>> { return std::make_unique<int>(3); });
  EXPECT_EQ(**value, 3);
  EXPECT_EQ(Guarded("a check", [] { return absl::NotFoundError("no"); }),
            absl::NotFoundError("no"));
  EXPECT_EQ(Guarded("a deed", [] {}), absl::OkStatus());
}

TEST(Guarded, TurnsWhateverIsThrownIntoAStatus) {
  EXPECT_EQ(Guarded("a text", [] { throw std::bad_alloc(); }),
            absl::ResourceExhaustedError("not enough memory for a text"));
  EXPECT_EQ(Guarded("a text", [] { throw std::runtime_error("odd"); }),
            absl::InternalError("a text failed: odd"));
  EXPECT_EQ(Guarded("a text", [] { throw 5; }),
            absl::InternalError("a text failed with no std::exception"));
}

std::string& Reported() {
  static std::string reported;
  return reported;
}

TEST(RunGuarded, ReportsWhatNobodyWaitsFor) {
  ReportFailuresTo([](std::string_view work, const absl::Status& failure) {
    Reported() = std::string(work) + ": " + failure.ToString();
  });
  RunGuarded("a look", [] {});
  EXPECT_EQ(Reported(), "");
  RunGuarded("a look", [] { throw std::runtime_error("odd"); });
  EXPECT_EQ(Reported(), "a look: INTERNAL: a look failed: odd");
}

TEST(RunGuarded, SurvivesAReporterThatFindsNoMemory) {
  ReportFailuresTo([](std::string_view, const absl::Status&) { throw std::bad_alloc(); });
  RunGuarded("a look", [] { throw std::bad_alloc(); });
}

}  // namespace
}  // namespace linserve
