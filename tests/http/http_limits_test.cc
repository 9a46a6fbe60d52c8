#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "http/http_fixture.h"
#include "http/raw_connection.h"

namespace linserve {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kPost = "POST /nothing HTTP/1.1\r\nHost: x\r\n";

class HttpLimitsTest : public HttpServerTest {
 protected:
  // That waits for nothing that it need not wait for.
  std::unique_ptr<HttpServer> StartHasty(HttpLimits limits = {}) {
    limits.idle = milliseconds(100);
    return Start(limits);
  }

  // What a caller is told who sends `begin`, and then `more` without an end.
  static std::string AnswerToEndless(const HttpServer& server, const std::string& begin,
                                     const std::string& more,
                                     milliseconds pause = milliseconds(0)) {
    RawConnection caller(server.port());
    caller.Send(begin);
    std::thread sender([&] {
      while (caller.Send(more)) std::this_thread::sleep_for(pause);
    });
    const std::string answer = caller.ReadAll();
    sender.join();
    return answer;
  }

  // What a caller is told who sends just this.
  static std::string AnswerTo(const HttpServer& server, const std::string& text) {
    RawConnection caller(server.port());
    caller.Send(text);
    return caller.ReadAll();
  }
};

TEST_F(HttpLimitsTest, ARequestLineEndsSomewhere) {
  const auto server = StartHasty();
  EXPECT_THAT(AnswerToEndless(*server, "GET /", std::string(4096, 'a')),
              StartsWith("HTTP/1.1 414"));
  EXPECT_EQ(Get(*server, "/" + std::string(3000, 'a'))->status, 404);
}

TEST_F(HttpLimitsTest, HeadersEndSomewhere) {
  const auto server = StartHasty();
  const std::string line = "GET /livez HTTP/1.1\r\n";
  EXPECT_THAT(AnswerToEndless(*server, line + "X: ", std::string(4096, 'a')),
              StartsWith("HTTP/1.1 431"));
  EXPECT_THAT(AnswerToEndless(*server, line, "X: a\r\n"), StartsWith("HTTP/1.1 431"));
}

TEST_F(HttpLimitsTest, ALineBeforeAChunkEndsSomewhere) {
  const auto server = StartHasty();
  const std::string head = std::string(kPost) + "Transfer-Encoding: chunked\r\n\r\n";
  EXPECT_THAT(AnswerToEndless(*server, head, std::string(4096, '1')), StartsWith("HTTP/1.1 404"));
}

TEST_F(HttpLimitsTest, ABodyEndsSomewhere) {
  const auto server = StartHasty();
  const std::string head = std::string(kPost) + "Transfer-Encoding: chunked\r\n\r\n";
  EXPECT_THAT(AnswerToEndless(*server, head, "400\r\n" + std::string(1024, 'a') + "\r\n"),
              StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(AnswerToEndless(*server, std::string(kPost) + "Content-Length: 99999999999\r\n\r\n",
                              std::string(4096, 'a')),
              StartsWith("HTTP/1.1 "));
}

TEST_F(HttpLimitsTest, AHeadHasItsTime) {
  const auto server = StartHasty({.patience = milliseconds(200)});
  EXPECT_THAT(AnswerToEndless(*server, "GET /li", "v", milliseconds(10)),
              AllOf(StartsWith("HTTP/1.1 408"), HasSubstr("did not come whole")));
  EXPECT_THAT(AnswerTo(*server, "GET /livez HT"), StartsWith("HTTP/1.1 408"));
}

TEST_F(HttpLimitsTest, ABodyThatStallsIsGivenUp) {
  const auto server = StartHasty({.stall = milliseconds(200)});
  const std::string head = std::string(kPost) + "Content-Length: 10\r\n\r\n";
  EXPECT_THAT(AnswerTo(*server, head + "a"), HasSubstr("Connection: close"));
}

TEST_F(HttpLimitsTest, ABodyThatDripsIsGivenUp) {
  const auto server = StartHasty({.patience = milliseconds(200)});
  const std::string head = std::string(kPost) + "Content-Length: 100000\r\n\r\n";
  EXPECT_THAT(AnswerToEndless(*server, head, "a", milliseconds(10)),
              HasSubstr("Connection: close"));
}

TEST_F(HttpLimitsTest, AConnectionThatIsIdleIsEnded) {
  const auto server = StartHasty();
  EXPECT_THAT(AnswerTo(*server, "GET /livez HTTP/1.1\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("Keep-Alive: timeout=1, max=10000")));
  EXPECT_EQ(AnswerTo(*server, ""), "");
}

TEST_F(HttpLimitsTest, RequestsMayComeTogether) {
  const auto server = StartHasty();
  EXPECT_THAT(AnswerTo(*server, "GET /livez HTTP/1.1\r\n\r\nGET /nothing HTTP/1.1\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("HTTP/1.1 404")));
}

TEST_F(HttpLimitsTest, NothingIsTakenForARequestThatMayBeABody) {
  handlers_.routes = {{"POST", "/echo",
                       [](const HttpRequest& request) { return HttpReply{.body = request.body}; }}};
  const auto server = Start();
  const std::string hidden = "GET /metrics HTTP/1.1\r\n\r\n";
  const std::string length = "Content-Length: " + std::to_string(hidden.size()) + "\r\n";
  for (const std::string& request : std::vector<std::string>{
           "GET /livez HTTP/1.1\r\n" + length + "\r\n",
           "POST /echo HTTP/1.1\r\nContent-Type: multipart/form-data\r\n" + length + "\r\n",
           "POST /echo HTTP/1.1\r\nRange: bytes=5-1\r\n" + length + "Connection: close\r\n\r\n",
           "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
           "POST /echo HTTP/9.9\r\n" + length + "\r\n",
       }) {
    EXPECT_THAT(AnswerTo(*server, request + hidden),
                AllOf(StartsWith("HTTP/1.1 "), Not(HasSubstr("linserve_up"))))
        << request;
  }
}

TEST_F(HttpLimitsTest, OverlooksRanges) {
  const auto server = Start();
  std::string ranges = "bytes=0-0";
  for (int i = 0; i < 500; ++i) ranges += ",0-0";
  const auto answer =
      httplib::Client("127.0.0.1", server->port()).Get("/livez", {{"Range", ranges}});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->body, "ok\n");
}

TEST_F(HttpLimitsTest, ACallerWhoLeavesIsNoticed) {
  handlers_.routes = {WaitUntilAbandoned()};
  const auto server = Start();
  RawConnection caller(server->port());
  caller.Send("POST /wait HTTP/1.1\r\nContent-Length: 0\r\n\r\n");
  begun_.get_future().wait();
  caller.Close();
  EXPECT_TRUE(noticed_.get_future().get());
}

TEST_F(HttpLimitsTest, EndsThoughACallerWaits) {
  handlers_.routes = {WaitUntilAbandoned()};
  auto server = Start();
  RawConnection caller(server->port());
  caller.Send("POST /wait HTTP/1.1\r\nContent-Length: 0\r\n\r\n");
  begun_.get_future().wait();
  server.reset();
  EXPECT_TRUE(noticed_.get_future().get());
}

TEST_F(HttpLimitsTest, EndsThoughSomebodyGoesOnSending) {
  handlers_.live = [this] {
    begun_.set_value();
    return true;
  };
  auto server = Start();
  RawConnection caller(server->port());
  caller.Send("GET /livez HTTP/1.1\r\n\r\nGET /livez HT");
  begun_.get_future().wait();
  std::atomic<bool> ended{false};
  std::thread drip([&] {
    while (!ended) {
      caller.Send("x");
      std::this_thread::sleep_for(milliseconds(100));
    }
  });
  server.reset();
  ended = true;
  drip.join();
}

}  // namespace
}  // namespace linserve
