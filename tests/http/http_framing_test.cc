#include <atomic>
#include <string>
#include <vector>

#include "core/files/gzip.h"
#include "http/http_fixture.h"
#include "http/raw_connection.h"

namespace linserve {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kEcho = "POST /echo HTTP/1.1\r\nHost: x\r\n";
// This must not be answered.
constexpr const char* kHidden = "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

class HttpFramingTest : public HttpServerTest {
 protected:
  HttpFramingTest() {
    handlers_.routes = {
        {"POST", "/echo",
         [](const HttpRequest& request) { return HttpReply{.body = request.body}; }},
        {"POST", "/refused", [](const HttpRequest&) { return HttpReply{}; },
         [](const HttpRequest&) {
           return [](size_t) { return HttpReply{.status = 403, .body = ""}; };
         }}};
    server_ = Start({.linger = std::chrono::milliseconds(100)});
  }

  // Returns what a caller is told who sends this, and then no more.
  std::string AnswerTo(const std::string& text) const {
    RawConnection caller(server_->port());
    caller.Send(text);
    caller.HalfClose();
    return caller.ReadAll();
  }
  // Returns what a caller is told who sends this as a body in chunks.
  std::string AnswerToChunks(const std::string& path, const std::string& chunks) const {
    return AnswerTo("POST " + path + " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" +
                    chunks);
  }

  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpFramingTest, RequestsMayComeTogether) {
  EXPECT_THAT(AnswerTo(std::string(kEcho) + "Content-Length: 5\r\n\r\nhello\r\n" + kHidden),
              AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("\r\n\r\nhelloHTTP/1.1 200"),
                    EndsWith("linserve_up 1\n")));
  EXPECT_THAT(AnswerToChunks("/echo",
                             std::string("2;a=b\r\nhe\r\n3\r\nllo\r\n0\r\nA: b\r\n\r\n") + kHidden),
              AllOf(HasSubstr("\r\n\r\nhelloHTTP/1.1 200"), EndsWith("linserve_up 1\n")));
}

TEST_F(HttpFramingTest, NothingIsReadAfterARequestThatIsNone) {
  const std::string length =
      "Content-Length: " + std::to_string(std::string(kHidden).size()) + "\r\n";
  for (const auto& [status, head] : std::vector<std::pair<std::string, std::string>>{
           {"505", "POST /echo HTTP/9.9\r\nHost: x\r\n" + length + "\r\n"},
           {"400", "POST /echo HTTP/1.1\r\n" + length + "\r\n"},
           {"400", "POST /echo HTTP/1.1\r\nHost: x\r\n" + length + length + "\r\n"},
           {"400", std::string(kEcho) + length + "Transfer-Encoding: chunked\r\n\r\n"},
           {"400", std::string(kEcho) + "A : b\r\n\r\n"},
           {"400", std::string(kEcho) + "A: b\r\n c\r\n\r\n"},
           {"400", std::string(kEcho) + "A: b\n\r\n"},
           {"501", std::string(kEcho) + "Transfer-Encoding: gzip, chunked\r\n\r\n"},
           {"501", "QUERY /echo HTTP/1.1\r\nHost: x\r\n" + length + "\r\n"},
           {"505", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
       }) {
    const std::string answer = AnswerTo(head + kHidden);
    EXPECT_THAT(answer, AllOf(StartsWith("HTTP/1.1 " + status), HasSubstr("Connection: close"),
                              Not(HasSubstr("linserve_up"))))
        << head;
    EXPECT_EQ(answer.rfind("HTTP/1.1 "), 0U) << answer;
  }
}

TEST_F(HttpFramingTest, NothingIsReadAfterABodyThatIsMalformed) {
  for (const char* path : {"/echo", "/refused", "/nothing", "/livez"}) {
    for (const char* chunks :
         {"5\r\nhelloX\r\n0\r\n\r\n", "5\r\nhello\r\n", "5\nhello\r\n0\r\n\r\n", "0x69\r\n",
          "+69\r\n", "69zz\r\n", "-ff\r\n", "-ffffffffffffff97\r\n", "x\r\n", "\r\n",
          "0\r\nA : b\r\n\r\n", "0\n\n"}) {
      const std::string answer = AnswerToChunks(path, std::string(chunks) + kHidden);
      EXPECT_THAT(answer, AllOf(StartsWith("HTTP/1.1 400"), HasSubstr("Connection: close"),
                                Not(HasSubstr("linserve_up"))))
          << path << " " << chunks;
      EXPECT_EQ(answer.rfind("HTTP/1.1 "), 0U) << answer;
    }
  }
}

TEST_F(HttpFramingTest, WhateverIsRefusedHasTheFormOfItsApiAndIsCounted) {
  std::atomic<int> counted = 0;
  handlers_.replied = [&](int status) { counted = status; };
  handlers_.forms = {
      {.prefix = "/echo",
       .begin = [](HttpRequest&) {},
       .end = [](const HttpRequest&,
                 HttpReply& reply) { reply.headers.emplace_back("X-Form", "echo"); }}};
  server_ = Start();
  for (const char* chunks : {"x\r\n", "5\r\nhelloX\r\n0\r\n\r\n"}) {
    EXPECT_THAT(AnswerToChunks("/echo", chunks),
                AllOf(StartsWith("HTTP/1.1 400"), HasSubstr("X-Form: echo")));
    EXPECT_EQ(counted, 400);
  }
  EXPECT_THAT(AnswerTo("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(counted, 200);
  EXPECT_THAT(AnswerTo("PRI * HTTP/2.0\r\n\r\n"), StartsWith("HTTP/1.1 505"));
  EXPECT_EQ(counted, 505);
}

TEST_F(HttpFramingTest, TheLastBodyOfAConnectionIsReadToItsEndToo) {
  EXPECT_THAT(AnswerTo("GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                       "Transfer-Encoding: chunked\r\n\r\n5\r\nhelloX\r\n0\r\n\r\n"),
              StartsWith("HTTP/1.1 400"));
}

TEST_F(HttpFramingTest, ABodyThatNothingAsksForIsSkipped) {
  const std::string length =
      "Content-Length: " + std::to_string(std::string(kHidden).size()) + "\r\n\r\n";
  for (const auto& [status, begin] :
       std::vector<std::pair<std::string, std::string>>{{"200", "GET /livez"},
                                                        {"200", "HEAD /livez"},
                                                        {"404", "GET /nothing"},
                                                        {"404", "POST /nothing"},
                                                        {"405", "GET /echo"},
                                                        {"405", "POST /livez"},
                                                        {"403", "POST /refused"}}) {
    const std::string answer = AnswerTo(begin + " HTTP/1.1\r\nHost: x\r\n" + length + kHidden +
                                        "HEAD /readyz HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_THAT(answer, AllOf(StartsWith("HTTP/1.1 " + status), Not(HasSubstr("linserve_up"))))
        << begin;
    EXPECT_GT(answer.rfind("HTTP/1.1 200"), 0U) << answer;
  }
}

TEST_F(HttpFramingTest, AMethodThatIsNotAnsweredNamesThoseThatAre) {
  EXPECT_THAT(AnswerTo("DELETE /livez HTTP/1.1\r\nHost: x\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 405 Method Not Allowed\r\n"),
                    HasSubstr("\r\nAllow: GET, HEAD, OPTIONS\r\n")));
  EXPECT_THAT(AnswerTo("GET /echo HTTP/1.1\r\nHost: x\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 405"), HasSubstr("\r\nAllow: POST, OPTIONS\r\n")));
  EXPECT_THAT(AnswerTo("PUT /nothing HTTP/1.1\r\nHost: x\r\n\r\n"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(AnswerTo("OPTIONS /livez HTTP/1.1\r\nHost: x\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("\r\nAllow: GET, HEAD, OPTIONS\r\n"),
                    HasSubstr("\r\nContent-Length: 0\r\n")));
}

TEST_F(HttpFramingTest, ConnectionsEndWhenTheirCallersSaySo) {
  for (const char* begin :
       {"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: foo, Close\r\n\r\n",
        "GET /livez HTTP/1.0\r\n\r\n", "GET /livez HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"}) {
    EXPECT_THAT(
        AnswerTo(std::string(begin) + kHidden),
        AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("Connection: close"), EndsWith("ok\n")));
  }
  EXPECT_THAT(AnswerTo(std::string("GET /livez HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, "
                                   "HTTP2-Settings\r\nUpgrade: h2c\r\n\r\n") +
                       kHidden),
              AllOf(StartsWith("HTTP/1.1 200"), EndsWith("linserve_up 1\n")));
}

TEST_F(HttpFramingTest, BodiesMayComePacked) {
  const std::string text(100'000, 'a');
  const std::string packed = Gzip(text);
  const auto post = [&](const std::string& coding, const std::string& body) {
    return AnswerTo(std::string(kEcho) + "Connection: close\r\nContent-Encoding: " + coding +
                    "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  };
  EXPECT_THAT(post("GZIP", Gzip("hello")), EndsWith("\r\n\r\nhello"));
  EXPECT_THAT(post("identity", "hello"), EndsWith("\r\n\r\nhello"));
  EXPECT_THAT(post("gzip", packed), StartsWith("HTTP/1.1 413"));  // of 64 KiB
  EXPECT_THAT(post("gzip", "hello"), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(post("gzip", Gzip("hello").substr(0, 20)), StartsWith("HTTP/1.1 400"));
  for (const char* unknown : {"gzip, gzip", "br", "zstd"}) {
    EXPECT_THAT(post(unknown, packed), AllOf(StartsWith("HTTP/1.1 415"),
                                             HasSubstr("\r\nAccept-Encoding: gzip, deflate\r\n")));
  }
}

}  // namespace
}  // namespace linserve
