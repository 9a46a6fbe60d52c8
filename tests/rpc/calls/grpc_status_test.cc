#include "rpc/calls/grpc_status.h"

#include <gtest/gtest.h>

#include "core/status/retry_delay.h"
#include "core/strings/utf8.h"

namespace linserve {
namespace {

// A status goes in trailers: gRPC replaces one that is too large by another one.
TEST(GrpcStatus, HasAMessageOfOneKibibyteAtMost) {
  const absl::Status status = absl::NotFoundError(std::string(20000, 'a'));
  EXPECT_EQ(ToGrpcStatus(status).error_message(), std::string(1024, 'a'));
  EXPECT_LT(ToGrpcStatus(RetryAfter(status, std::chrono::seconds(1))).error_details().size(),
            2048U);
  EXPECT_EQ(ToGrpcStatus(absl::NotFoundError("short")).error_message(), "short");
}

TEST(GrpcStatus, IsNotCutInsideACharacter) {
  std::string umlauts = "a";
  while (umlauts.size() < 2000) umlauts += "\xc3\xa4";
  const std::string message = ToGrpcStatus(absl::NotFoundError(umlauts)).error_message();
  EXPECT_EQ(message.size(), 1023U);
  EXPECT_TRUE(IsUtf8(message));
}

}  // namespace
}  // namespace linserve
