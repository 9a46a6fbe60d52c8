#include "serving/load_reporter.h"

#include "support/fakes/fake_clock.h"
#include "support/test_server.h"

namespace linserve {
namespace {

TEST(LoadReporter, CountsRequestsASecond) {
  TestServer server;
  FakeClock clock;
  LoadReporter reporter(server.repository(), clock);
  EmbeddingClient client(server.client_options());
  for (int i = 0; i < 6; ++i) {
    EXPECT_TRUE(client.Embed(CallOf("tokens", {Tokens("a", {1})})).ok());
  }
  EXPECT_FALSE(client.Embed(CallOf("tokens", {})).ok());
  ServerLoad report;
  const auto look = [&report](const ServerLoad& made) {
    report = made;
    return std::string("read");
  };
  reporter.Encoded(look);
  EXPECT_EQ(report.rps_fractional, 0);  // none is due yet
  clock.Advance(std::chrono::seconds(2));
  reporter.Encoded(look);
  EXPECT_DOUBLE_EQ(report.rps_fractional, 3.5);
  EXPECT_DOUBLE_EQ(report.eps, 0.5);
  EXPECT_GT(report.application_utilization, 0);
  EXPECT_GT(report.mem_utilization, 0);
  EXPECT_LT(report.mem_utilization, 1);
  clock.Advance(std::chrono::seconds(2));
  reporter.Encoded(look);
  EXPECT_EQ(report.rps_fractional, 0);
}

TEST(LoadReporter, CountsNothingTwiceOfAModelThatIsServedAgain) {
  TestServer server;
  FakeClock clock;
  LoadReporter reporter(server.repository(), clock);
  EmbeddingClient client(server.client_options());
  for (int i = 0; i < 6; ++i) {
    EXPECT_TRUE(client.Embed(CallOf("tokens", {Tokens("a", {1})})).ok());
  }
  ServerLoad report;
  const auto look = [&] {
    clock.Advance(std::chrono::seconds(1));
    reporter.Encoded([&report](const ServerLoad& made) {
      report = made;
      return std::string("read");
    });
  };
  look();
  EXPECT_EQ(report.rps_fractional, 6);
  server.repository().Withdraw("tokens", 2, "unloaded");
  look();
  EXPECT_EQ(report.rps_fractional, 0);
  server.PublishAgain();
  look();
  EXPECT_EQ(report.rps_fractional, 0);
  EXPECT_EQ(report.application_utilization, 0);
  EXPECT_TRUE(client.Embed(CallOf("tokens", {Tokens("a", {1})})).ok());
  look();
  EXPECT_EQ(report.rps_fractional, 1);
}

TEST(LoadReporter, CountsAfreshAModelThatWasGoneMeanwhile) {
  TestServer server;
  FakeClock clock;
  LoadReporter reporter(server.repository(), clock);
  EmbeddingClient client(server.client_options());
  ServerLoad report;
  const auto look = [&] {
    clock.Advance(std::chrono::seconds(1));
    reporter.Encoded([&report](const ServerLoad& made) {
      report = made;
      return std::string("read");
    });
  };
  for (int i = 0; i < 6; ++i) EXPECT_FALSE(client.Embed(CallOf("tokens", {})).ok());
  look();
  EXPECT_EQ(report.eps, 6);
  server.repository().Forget("tokens", 2);
  server.PublishAgain();
  EXPECT_TRUE(client.Embed(CallOf("tokens", {Tokens("a", {1})})).ok());
  EXPECT_FALSE(client.Embed(CallOf("tokens", {})).ok());
  look();
  EXPECT_EQ(report.rps_fractional, 2);
  EXPECT_EQ(report.eps, 1);
}

TEST(LoadReporter, EncodesEachReportOnce) {
  TestServer server;
  FakeClock clock;
  LoadReporter reporter(server.repository(), clock);
  int encoded = 0;
  const auto count = [&encoded](const ServerLoad&) { return std::to_string(++encoded); };
  EXPECT_EQ(reporter.Encoded(count), "1");
  EXPECT_EQ(reporter.Encoded(count), "1");
  clock.Advance(std::chrono::seconds(2));
  EXPECT_EQ(reporter.Encoded(count), "2");
}

}  // namespace
}  // namespace linserve
