#include <gmock/gmock.h>

#include <string>

#include "core/files/gzip.h"
#include "rest/rest_fixture.h"
#include "support/test_files.h"

namespace linserve {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kSlow = "Bearer the token of slowness";
constexpr const char* kFew = "Bearer the token of few bytes";

struct RatesFile {
  RatesFile() {
    WriteAll(path, R"({"tokens": [{"name": "slow", "requests_per_second": 0.01,
                                   "token": "the token of slowness"},
                                  {"name": "few", "bytes_per_second": 1000,
                                   "token": "the token of few bytes"}]})");
  }
  TempDir directory;
  const std::string path = directory.File("tokens.json");
};

class RestRates : private RatesFile, public RestTest {
 protected:
  RestRates() : RestTest({.grpc = {.access = {.tokens_file = path}}}) {}
};

TEST_F(RestRates, RefuseARequestBeforeItsBodyComes) {
  const httplib::Headers slow = {{"Authorization", kSlow}};
  EXPECT_EQ(Post(kInfer, ThreeTokens().dump(), slow).status, 200);
  RawConnection caller(http_->port());
  caller.Send("POST " + std::string(kInfer) + " HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n" +
              "Authorization: " + kSlow + "\r\n\r\n");
  const std::string answer = caller.Read();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 429"));
  EXPECT_THAT(answer, HasSubstr("requests_per_second"));
  // Questions cost next to nothing, and are free.
  EXPECT_EQ(LocalHttpClient(http_->port()).Get("/v2/models/tokens", slow)->status, 200);
}

TEST_F(RestRates, ArePaidByWhatUnpacksInVain) {
  const httplib::Headers few = {{"Authorization", kFew}, {"Content-Encoding", "gzip"}};
  std::string packed = Gzip(std::string(100'000, 'a'));
  packed[packed.size() - 8] ^= 1;  // of the checksum
  EXPECT_EQ(Post(kInfer, packed, few).status, 400);
  const Reply refused = Post(kInfer, packed, few);
  EXPECT_EQ(refused.status, 429);
  EXPECT_THAT(refused.body, HasSubstr("bytes_per_second"));
}

}  // namespace
}  // namespace linserve
