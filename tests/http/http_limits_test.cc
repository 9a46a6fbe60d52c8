#include <sys/resource.h>
#include <sys/select.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "http/http_fixture.h"
#include "http/raw_connection.h"

namespace linserve {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kPost = "POST /nothing HTTP/1.1\r\nHost: x\r\n";
constexpr const char* kLive = "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n";
constexpr const char* kWait = "POST /wait HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n";

class HttpLimitsTest : public HttpServerTest {
 protected:
  // Starts a server that waits for nothing that it need not wait for.
  std::unique_ptr<HttpServer> StartHasty(HttpLimits limits = {}) {
    limits.idle = milliseconds(100);
    limits.grace = milliseconds(0);
    limits.linger = milliseconds(100);
    return Start(limits);
  }

  // Returns what a caller is told who sends `begin`, and then `more` without an end.
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

  // Returns what a caller is told who sends just this.
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
  // A page that reads its body: another one may be answered before the line has come.
  handlers_.routes = {{"POST", "/read", [](const HttpRequest&) { return HttpReply{}; }}};
  const auto server = StartHasty();
  const std::string head = "POST /read HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_THAT(AnswerToEndless(*server, head, std::string(4096, '1')), StartsWith("HTTP/1.1 400"));
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
  EXPECT_THAT(AnswerTo(*server, head + "a"), StartsWith("HTTP/1.1 404"));
}

TEST_F(HttpLimitsTest, ABodyThatDripsIsGivenUp) {
  const auto server = StartHasty({.patience = milliseconds(200)});
  const std::string head = std::string(kPost) + "Content-Length: 100000\r\n\r\n";
  EXPECT_THAT(AnswerToEndless(*server, head, "a", milliseconds(10)), StartsWith("HTTP/1.1 404"));
}

TEST_F(HttpLimitsTest, AConnectionThatIsIdleIsEnded) {
  const auto server = StartHasty();
  EXPECT_THAT(AnswerTo(*server, kLive),
              AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("Keep-Alive: timeout=0, max=9999\r\n")));
  EXPECT_EQ(AnswerTo(*server, ""), "");
}

TEST_F(HttpLimitsTest, AConnectionStaysOpenForAsLongAsItsCallerWasTold) {
  const auto server = Start();
  RawConnection caller(server->port());
  caller.Send(kLive);
  EXPECT_THAT(caller.Read(), HasSubstr("Keep-Alive: timeout=75, max=9999\r\n"));
  EXPECT_FALSE(caller.Answers(milliseconds(300)));
  caller.Send(kLive);
  EXPECT_THAT(caller.Read(), HasSubstr("Keep-Alive: timeout=75, max=9998\r\n"));
}

TEST_F(HttpLimitsTest, IdleConnectionsOccupyNoThreads) {
  const auto server = Start();
  const auto threads = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
  };
  std::vector<std::unique_ptr<RawConnection>> callers;
  for (int i = 0; i < 300; ++i) {
    callers.push_back(std::make_unique<RawConnection>(server->port()));
    callers.back()->Send(kLive);
    EXPECT_THAT(callers.back()->Read(), StartsWith("HTTP/1.1 200"));
  }
  EXPECT_LT(threads(), 30);
  for (const auto& caller : callers) {
    caller->Send(kLive);
    EXPECT_THAT(caller->Read(), StartsWith("HTTP/1.1 200"));
  }
}

TEST_F(HttpLimitsTest, ForAnotherConnectionOneThatIsIdleIsEnded) {
  const auto server = Start({.connections = 3});
  RawConnection slow(server->port());
  slow.Send("GET /livez HT");
  RawConnection first(server->port());
  RawConnection second(server->port());
  // Nobody is ended as long as nobody else comes.
  for (RawConnection* caller : {&first, &second, &first, &second}) {
    caller->Send(kLive);
    EXPECT_THAT(caller->Read(), StartsWith("HTTP/1.1 200"));
  }
  EXPECT_THAT(AnswerTo(*server, "GET /livez HTTP/1.0\r\n\r\n"), StartsWith("HTTP/1.1 200"));
  // A thread may still wait for the first one to ask again, and then it is the second that is idle.
  std::vector<RawConnection*> left;
  for (RawConnection* caller : {&first, &second}) {
    if (!caller->Answers(std::chrono::milliseconds(0))) left.push_back(caller);
  }
  ASSERT_EQ(left.size(), 1u);
  left[0]->Send(kLive);
  EXPECT_THAT(left[0]->Read(), StartsWith("HTTP/1.1 200"));
  slow.Send("TP/1.0\r\n\r\n");
  EXPECT_THAT(slow.ReadAll(), StartsWith("HTTP/1.1 200"));
}

TEST_F(HttpLimitsTest, OverlooksRanges) {
  const auto server = Start();
  std::string ranges = "bytes=0-0";
  for (int i = 0; i < 500; ++i) ranges += ",0-0";
  const auto answer = LocalHttpClient(server->port()).Get("/livez", {{"Range", ranges}});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->body, "ok\n");
}

TEST_F(HttpLimitsTest, MoreConnectionsThanThereMayBeWait) {
  handlers_.routes = {WaitUntilAbandoned()};
  const auto server = Start({.connections = 1, .idle = std::chrono::minutes(1)});
  RawConnection first(server->port());
  first.Send(kWait);
  begun_.get_future().wait();
  RawConnection second(server->port());
  second.Send(std::string(kPost) + "Connection: close\r\nContent-Length: 0\r\n\r\n");
  EXPECT_FALSE(second.Answers(milliseconds(300)));
  first.Close();
  EXPECT_TRUE(noticed_.get_future().get());
  EXPECT_THAT(second.ReadAll(), StartsWith("HTTP/1.1 404"));
}

TEST_F(HttpLimitsTest, ProbesAreAnsweredWhileAllOtherRequestsAreStuck) {
  std::latch stuck(7);
  std::latch release(1);
  handlers_.routes = {{"POST", "/wait", [&](const HttpRequest&) {
                         stuck.count_down();
                         release.wait();
                         return HttpReply{.body = "waited"};
                       }}};
  const auto server = StartHasty({.threads = 8});
  std::vector<std::unique_ptr<RawConnection>> callers;
  for (int i = 0; i < 7; ++i) {
    callers.push_back(std::make_unique<RawConnection>(server->port()));
    callers.back()->Send(kWait);
  }
  stuck.wait();
  const std::string busy = AnswerTo(*server, kWait);
  const std::string live = AnswerTo(*server, "GET /livez HTTP/1.0\r\n\r\n");
  release.count_down();
  EXPECT_THAT(busy, AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("Retry-After: 1")));
  EXPECT_THAT(live, StartsWith("HTTP/1.1 200"));
  for (const auto& caller : callers) EXPECT_THAT(caller->ReadAll(), HasSubstr("waited"));
}

TEST_F(HttpLimitsTest, AConnectionHasSoManyRequests) {
  const auto server = Start();
  RawConnection caller(server->port());
  std::thread sender([&] {
    std::string requests;
    for (int i = 0; i < 100; ++i) requests += kLive;
    while (caller.Send(requests)) {
    }
  });
  const std::string answers = caller.ReadAll();
  sender.join();
  size_t count = 0;
  for (size_t at = answers.find("HTTP/1.1 200"); at != std::string::npos; ++count) {
    at = answers.find("HTTP/1.1 200", at + 1);
  }
  EXPECT_EQ(count, 10'000U);
  EXPECT_THAT(answers.substr(answers.rfind("HTTP/1.1 200")), HasSubstr("Connection: close"));
}

TEST_F(HttpLimitsTest, AnAnswerIsSentWhateverTheNumberOfItsDescriptor) {
  const auto server = Start();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit raised = before;
  raised.rlim_cur = std::min<rlim_t>(before.rlim_max, 4096);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &raised), 0);
  // There are more descriptors than select() can look at.
  std::vector<Descriptor> others;
  while (others.size() < FD_SETSIZE) others.emplace_back(::dup(STDERR_FILENO));
  ASSERT_GE(others.back().get(), 0) << "the limit of descriptors is too low";
  EXPECT_THAT(AnswerTo(*server, "GET /livez HTTP/1.0\r\n\r\n"), StartsWith("HTTP/1.1 200"));
  others.clear();
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST_F(HttpLimitsTest, ACallerWhoLeavesIsNoticed) {
  handlers_.routes = {WaitUntilAbandoned()};
  const auto server = Start();
  RawConnection caller(server->port());
  caller.Send(kWait);
  begun_.get_future().wait();
  caller.Close();
  EXPECT_TRUE(noticed_.get_future().get());
}

TEST_F(HttpLimitsTest, EndsThoughACallerWaits) {
  handlers_.routes = {WaitUntilAbandoned()};
  auto server = Start();
  RawConnection caller(server->port());
  caller.Send(kWait);
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
  caller.Send(std::string(kLive) + "GET /livez HT");
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
