#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <new>
#include <string>

#include "core/files/gzip.h"
#include "http/http_fixture.h"
#include "http/raw_connection.h"

namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

// So many allocations succeed, and then one fails, or all of them. Threads of tests are spared.
std::atomic<int64_t> left_until_failure = kNever;
std::atomic<bool> all_fail = false;
std::atomic<int64_t> failures = 0;
thread_local bool spared = false;

bool Fails() {
  if (spared || left_until_failure == kNever) return false;
  const int64_t left = --left_until_failure;
  if (left > 0 || (left < 0 && !all_fail)) return false;
  ++failures;
  return true;
}

}  // namespace

// These replace the standard library's in this program of tests.
void* operator new(size_t size) {
  void* const allocated = Fails() ? nullptr : std::malloc(size);
  if (allocated == nullptr) throw std::bad_alloc();
  return allocated;
}
void operator delete(void* allocated) noexcept { std::free(allocated); }
void operator delete(void* allocated, size_t) noexcept { std::free(allocated); }

namespace linserve {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class HttpOutOfMemoryTest : public HttpServerTest {
 protected:
  HttpOutOfMemoryTest() {
    spared = true;
    handlers_.routes = {{"POST", "/echo/(.*)", [](const HttpRequest& request) {
                           return HttpReply{.body = request.body + request.captures.at(0)};
                         }}};
    server_ = Start();
  }
  ~HttpOutOfMemoryTest() override { Stop(); }

  static void Stop() { left_until_failure = kNever; }

  std::string AnswerTo(const std::string& text) const {
    RawConnection caller(server_->port());
    caller.Send(text);
    caller.HalfClose();
    return caller.ReadAll();
  }

  // Asks again and again, and has one allocation fail after another, or all from one on, until none
  // of a request's is left.
  void TryEach(bool all, const std::string& request) {
    all_fail = all;
    int64_t tried = 0;
    std::string answer;
    for (int64_t before = -1; before != failures; ++tried) {
      before = failures;
      left_until_failure = tried + 1;
      answer = AnswerTo(request);
      Stop();
      EXPECT_THAT(answer, AnyOf("", StartsWith("HTTP/1.1 503"), StartsWith("HTTP/1.1 200")))
          << tried;
      ASSERT_THAT(AnswerTo("GET /livez HTTP/1.0\r\n\r\n"), StartsWith("HTTP/1.1 200")) << tried;
    }
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
    EXPECT_GT(tried, 20);
  }

  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpOutOfMemoryTest, EndsARequestAndNothingElse) {
  const std::string packed = Gzip(std::string(1000, 'a'));
  const std::string request =
      "POST /echo/%41 HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\nContent-Encoding: gzip\r\n"
      "Transfer-Encoding: chunked\r\n\r\n" +
      std::string(1, "0123456789abcdef"[packed.size() / 16]) +
      std::string(1, "0123456789abcdef"[packed.size() % 16]) + ";a=b\r\n" + packed +
      "\r\n0\r\nTrailer: a\r\n\r\n";
  ASSERT_LT(packed.size(), 256U);  // two digits
  TryEach(/*all=*/false, request);
  TryEach(/*all=*/true, request);
}

TEST_F(HttpOutOfMemoryTest, AHandlerWithoutMemoryIsBusy) {
  handlers_.status_json = []() -> std::string { throw std::bad_alloc(); };
  server_ = Start();
  const std::string answer = AnswerTo("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(answer, AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("Retry-After: 1\r\n"),
                            HasSubstr("Connection: close"), HasSubstr("out of memory")));
}

}  // namespace
}  // namespace linserve
