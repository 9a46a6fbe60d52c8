#include "http/content.h"

#include <gmock/gmock.h>

#include <string>

#include "core/files/gzip.h"

namespace linserve {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

const std::string kText(100'000, 'a');

HttpReply Packed(const std::string& accepted, HttpReply reply = {.body = kText, .packable = true}) {
  HttpRequest request;
  request.headers["accept-encoding"] = accepted;
  PackContent(request, reply);
  return reply;
}

TEST(PackContent, IsForThoseWhoWantGzipAtLeastAsMuchAsNothing) {
  for (const char* accepted : {"gzip", "br, GZIP;q=0.5", "x-gzip", "*", "gzip ; q=0.001",
                               "gzip;level=1", "gzip;", "gzip;q=0.5, identity;q=0.5"}) {
    const HttpReply reply = Packed(accepted);
    EXPECT_EQ(reply.body, Gzip(kText)) << accepted;
    EXPECT_THAT(reply.headers,
                ElementsAre(Pair("Vary", "Accept-Encoding"), Pair("Content-Encoding", "gzip")))
        << accepted;
  }
  for (const char* accepted :
       {"", "identity", "gzip;q=0", "gzip; q=0.00", "br", "*;q=0", "*, gzip;q=0",
        "gzip;q=0.5, identity", "gzip;q=2", "gzip;q=x", "gzip;q="}) {
    const HttpReply reply = Packed(accepted);
    EXPECT_EQ(reply.body, kText) << accepted;
    EXPECT_THAT(reply.headers, ElementsAre(Pair("Vary", "Accept-Encoding"))) << accepted;
  }
}

TEST(PackContent, IsForLargeBodiesThatMayBePacked) {
  EXPECT_THAT(Packed("gzip", {.body = kText}).headers, IsEmpty());
  EXPECT_THAT(Packed("gzip", {.body = "{}", .packable = true}).headers, IsEmpty());
}

}  // namespace
}  // namespace linserve
