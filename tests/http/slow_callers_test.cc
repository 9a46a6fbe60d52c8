#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "http/http_fixture.h"
#include "http/raw_connection.h"

namespace linserve {
namespace {

using ::testing::SizeIs;
using ::testing::StartsWith;

class SlowCallersTest : public HttpServerTest {
 protected:
  using Callers = std::vector<std::unique_ptr<RawConnection>>;

  // Connects so many callers, each of whom sends this.
  static Callers Connect(const HttpServer& server, int count, const std::string& text) {
    Callers callers;
    for (int i = 0; i < count; ++i) {
      callers.push_back(std::make_unique<RawConnection>(server.port()));
      callers.back()->Send(text);
    }
    return callers;
  }

  static std::string AnswerTo(const HttpServer& server, const std::string& text) {
    RawConnection caller(server.port());
    caller.Send(text);
    return caller.ReadAll();
  }

  // Has a page that no socket's buffers hold.
  void ServeLongPage() {
    handlers_.metrics = [](MetricsFormat) { return std::string(kLong, 'a'); };
  }

  static constexpr size_t kLong = 32 << 20;
  static constexpr const char* kLive = "GET /livez HTTP/1.0\r\n\r\n";
  static constexpr const char* kGetLong = "GET /metrics HTTP/1.0\r\n\r\n";
};

TEST_F(SlowCallersTest, HeadsThatComeSlowlyOccupyNoThreads) {
  const auto server = Start({.threads = 1});
  const Callers callers = Connect(*server, 20, "GET /livez HT");
  EXPECT_THAT(AnswerTo(*server, kLive), StartsWith("HTTP/1.1 200"));
  for (const auto& caller : callers) caller->Send("TP/1.1\r\nHost: x\r\n\r\n");
  for (const auto& caller : callers) EXPECT_THAT(caller->Read(), StartsWith("HTTP/1.1 200"));
}

TEST_F(SlowCallersTest, BodiesThatNobodyAsksForOccupyNoThreads) {
  const auto server = Start({.threads = 1});
  const Callers callers =
      Connect(*server, 20, "POST /nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhe");
  EXPECT_THAT(AnswerTo(*server, kLive), StartsWith("HTTP/1.1 200"));
  for (const auto& caller : callers) EXPECT_THAT(caller->Read(), StartsWith("HTTP/1.1 404"));
  for (const auto& caller : callers) caller->Send(std::string("llo") + kLive);
  for (const auto& caller : callers) EXPECT_THAT(caller->ReadAll(), StartsWith("HTTP/1.1 200"));
}

TEST_F(SlowCallersTest, AnswersThatAreReadSlowlyOccupyNoThreadsAndBoundedMemory) {
  ServeLongPage();
  const auto server = Start({.threads = 4});
  const Callers callers = Connect(*server, 4, kGetLong);
  for (const auto& caller : callers) EXPECT_THAT(caller->Read(), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(AnswerTo(*server, kLive), StartsWith("HTTP/1.1 200"));
  // The slowest makes room for one who reads.
  EXPECT_THAT(AnswerTo(*server, kGetLong), SizeIs(testing::Gt(kLong - 4096)));
  int whole = 0;
  for (const auto& caller : callers) whole += caller->ReadAll().size() > kLong - 4096 ? 1 : 0;
  EXPECT_EQ(whole, 3);
}

TEST_F(SlowCallersTest, AnAnswerIsSentToItsEndThoughTheServerStops) {
  ServeLongPage();
  auto server = Start();
  RawConnection caller(server->port());
  caller.Send(kGetLong);
  EXPECT_THAT(caller.Read(), StartsWith("HTTP/1.1 200"));
  std::thread stop([&] { server.reset(); });
  EXPECT_THAT(caller.ReadAll(), SizeIs(testing::Gt(kLong - 4096)));
  stop.join();
}

TEST_F(SlowCallersTest, WhoSendsNoMoreIsAnsweredHoweverSlowlyItReads) {
  ServeLongPage();
  const auto server = Start();
  RawConnection caller(server->port());
  caller.Send(kGetLong);
  caller.HalfClose();
  EXPECT_THAT(caller.Read(), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(caller.ReadAll(), SizeIs(testing::Gt(kLong - 4096)));
}

}  // namespace
}  // namespace linserve
