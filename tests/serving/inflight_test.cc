#include "serving/inflight.h"

#include <gmock/gmock.h>

#include <limits>
#include <optional>

#include "core/status/retry_delay.h"
#include "support/test_files.h"
#include "telemetry/scraped.h"

namespace linserve {
namespace {

class InflightTest : public testing::Test {
 protected:
  double Bytes() const { return Scraped(metrics_.Scrape())["linserve_inflight_bytes"]; }

  Metrics metrics_{{}};
};

TEST_F(InflightTest, NamesTheLimitThatARequestMeets) {
  const std::vector<std::pair<InflightLimits, std::string>> cases = {
      {{.max_requests = 2}, "2 in flight and 1 asked for exceed max_concurrent_requests = 2"},
      {{.max_bytes = 29}, "20 in flight and 10 asked for exceed max_inflight_bytes = 29"},
      {{.max_requests_per_caller = 1}, "exceed max_concurrent_requests_per_caller = 1"},
      {{.max_bytes_per_caller = 19}, "exceed max_inflight_bytes_per_caller = 19"},
      {{.max_bytes_per_caller = 19}, "try again later"}};
  for (const auto& [limits, message] : cases) {
    const auto inflight = std::make_shared<Inflight>(limits, metrics_);
    const auto a = inflight->Reserve("a", 10);
    const auto b = inflight->Reserve("b", 10);
    ASSERT_TRUE(a.ok() && b.ok());
    EXPECT_THAT(inflight->Reserve("a", 10), IsStatus(kExhaustedCode, message));
    EXPECT_EQ(Scraped(metrics_.Scrape())["linserve_max_inflight_bytes"],
              static_cast<double>(limits.Resolved().max_bytes));
  }
  EXPECT_EQ(Scraped(metrics_.Scrape())[R"(linserve_refused_total{reason="inflight"})"], 2);
  EXPECT_EQ(Scraped(metrics_.Scrape())[R"(linserve_refused_total{reason="caller_inflight"})"], 3);
}

TEST_F(InflightTest, HasTheLimitsThatWereSetLast) {
  const auto inflight = std::make_shared<Inflight>(InflightLimits{.max_requests = 1}, metrics_);
  const auto first = inflight->Reserve("a", 10);
  ASSERT_TRUE(first.ok());
  EXPECT_FALSE(inflight->Reserve("b", 10).ok());
  inflight->SetLimits({.max_requests = 2, .max_bytes = 30});
  const auto second = inflight->Reserve("b", 10);
  EXPECT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(inflight->most_requests(), 2);
  EXPECT_EQ(inflight->most_bytes(), 15);
  EXPECT_EQ(Scraped(metrics_.Scrape())["linserve_max_inflight_bytes"], 30);
  // What is in flight beyond lower limits goes on, and nothing more is let in.
  inflight->SetLimits({.max_requests = 1, .max_bytes = 5});
  EXPECT_THAT(inflight->Reserve("c", 1), IsStatus(kExhaustedCode, "max_concurrent_requests = 1"));
  EXPECT_EQ(Bytes(), 20);
}

TEST_F(InflightTest, CountsWhatARequestHasInAnotherReservationAsItsOwn) {
  const auto inflight = std::make_shared<Inflight>(
      InflightLimits{.max_bytes = 100, .max_bytes_per_caller = 100}, metrics_);
  Inflight::Reservation body = inflight->ReserveBytes("a");
  ASSERT_TRUE(body.Grow(60).ok());
  EXPECT_TRUE(IsNeverFits(inflight->Reserve("a", 50, 60).status()));
  EXPECT_FALSE(IsNeverFits(inflight->Reserve("a", 50).status()));
  auto request = inflight->Reserve("a", 30, 60);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_TRUE(IsNeverFits(request->Grow(11)));
}

TEST_F(InflightTest, OneCallerHasOnlySoManyBodies) {
  const auto inflight = std::make_shared<Inflight>(InflightLimits{}, metrics_);
  auto first = inflight->ReserveBody("a", 2);
  const auto second = inflight->ReserveBody("a", 2);
  const auto request = inflight->Reserve("a", 10);  // has its body already
  EXPECT_TRUE(second.ok() && request.ok());
  EXPECT_THAT(inflight->ReserveBody("a", 2), IsStatus(kExhaustedCode, "over HTTP at once = 2"));
  EXPECT_TRUE(inflight->ReserveBody("b", 2).ok());
  first = absl::CancelledError("it left");
  EXPECT_TRUE(inflight->ReserveBody("a", 2).ok());
}

TEST_F(InflightTest, SaysWhatWillNeverFit) {
  const auto inflight = std::make_shared<Inflight>(
      InflightLimits{.max_bytes = 5, .max_bytes_per_caller = 5}, metrics_);
  EXPECT_THAT(inflight->Reserve("a", 10), IsStatus(kExhaustedCode, "send less at once"));
  Inflight::Reservation growing = inflight->ReserveBytes("b");
  EXPECT_TRUE(growing.Grow(4).ok());
  EXPECT_THAT(growing.Grow(2), IsStatus(kExhaustedCode, "0 in flight and 6 asked for exceed"));
  EXPECT_TRUE(IsNeverFits(growing.Grow(2)));
  EXPECT_FALSE(IsNeverFits(inflight->Reserve("a", 2).status()));
}

TEST_F(InflightTest, RefusesWhatNoSumCanHold) {
  const auto inflight = std::make_shared<Inflight>(InflightLimits{}, metrics_);
  const auto place = inflight->Reserve("a", 10);
  ASSERT_TRUE(place.ok());
  EXPECT_THAT(inflight->Reserve("a", std::numeric_limits<int64_t>::max()),
              IsStatus(kExhaustedCode, "max_inflight_bytes"));
  EXPECT_EQ(Bytes(), 10);
}

TEST_F(InflightTest, APlaceIsFreeWhenItsHolderEnds) {
  const auto inflight =
      std::make_shared<Inflight>(InflightLimits{.max_requests_per_caller = 1}, metrics_);
  std::optional<Inflight::Reservation> held = *inflight->Reserve("a", 10);
  EXPECT_EQ(Bytes(), 10);
  EXPECT_FALSE(inflight->Reserve("a", 10).ok());
  EXPECT_TRUE(inflight->Reserve("b", 10).ok());
  Inflight::Reservation moved = *std::move(held);
  held.reset();
  EXPECT_FALSE(inflight->Reserve("a", 10).ok());
  moved = {};
  EXPECT_EQ(Bytes(), 0);
  EXPECT_TRUE(inflight->Reserve("a", 10).ok());
}

TEST_F(InflightTest, APlaceMayOutliveTheBounds) {
  std::optional<Inflight::Reservation> held;
  {
    const auto inflight = std::make_shared<Inflight>(InflightLimits{}, metrics_);
    held = *inflight->Reserve("a", 10);
  }
  EXPECT_EQ(Bytes(), 10);
  held.reset();
  EXPECT_EQ(Bytes(), 0);
}

}  // namespace
}  // namespace linserve
