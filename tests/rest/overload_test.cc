#include <gmock/gmock.h>

#include <string>
#include <thread>

#include "rest/rest_fixture.h"

namespace linserve {
namespace {

using ::testing::HasSubstr;

class RestInflight : public RestTest {
 protected:
  RestInflight()
      : RestTest({.grpc = {.inflight = {.max_requests_per_caller = 1,
                                        .max_bytes = 1'000'000,
                                        .max_bytes_per_caller = 1'000'000}}}) {}
};

TEST_F(RestInflight, ABodyIsReadOnlyWhereThereIsRoomForWhatItBecomes) {
  EXPECT_EQ(Post(kInfer, ThreeTokens().dump()).status, 200);
  const Reply refused = Post(kInfer, std::string(100'000, ' '));
  EXPECT_EQ(refused.status, 413);  // it fits at no time
  EXPECT_FALSE(refused.headers.contains("Retry-After"));
  EXPECT_THAT(refused.body, HasSubstr("max_inflight_bytes = 1000000; send less at once"));
  EXPECT_EQ(Post(kInfer, ThreeTokens().dump()).status, 200);
}

TEST_F(RestTest, ACallerWhoLeavesEndsThePass) {
  server_.tokens().ComputeWithoutEnd();
  RawConnection caller(http_->port());
  SendThreeTokens(caller);
  ASSERT_TRUE(server_.tokens().WaitForStarted(1));
  caller.Close();
  EXPECT_TRUE(server_.WaitFor(Abandoned("batch"), 1));
  EXPECT_TRUE(server_.WaitFor(InFlight("/v2/models/infer"), 0));
  EXPECT_EQ(
      server_.Scrape()
          [R"(linserve_requests_total{code="CANCELLED",model="tokens",rpc="/v2/models/infer"})"],
      1);
  EXPECT_EQ(server_.tokens().computed(), 0);
}

class RestOverloadTest : public RestTest {
 protected:
  RestOverloadTest() : RestTest({.limits = {.max_sequences = 1}}) {}
};

TEST_F(RestOverloadTest, ARefusalSaysWhenToComeBack) {
  server_.tokens().Hold();
  std::thread first([&] { EXPECT_EQ(Post(kInfer, ThreeTokens().dump()).status, 200); });
  ASSERT_TRUE(server_.tokens().WaitForStarted(1));
  std::thread second([&] { EXPECT_EQ(Post(kInfer, ThreeTokens().dump()).status, 200); });
  EXPECT_TRUE(server_.WaitFor(OfTokens("linserve_queue_sequences"), 1));
  const Reply reply = Post(kInfer, ThreeTokens().dump());
  EXPECT_EQ(reply.status, 429);
  EXPECT_TRUE(reply.headers.contains("Retry-After"));
  server_.tokens().LetGo();
  first.join();
  second.join();
}

TEST_F(RestOverloadTest, ACallerWhoHasLeftMakesRoom) {
  server_.tokens().Hold();
  std::thread first([&] { EXPECT_EQ(Post(kInfer, ThreeTokens().dump()).status, 200); });
  ASSERT_TRUE(server_.tokens().WaitForStarted(1));
  RawConnection caller(http_->port());
  SendThreeTokens(caller);
  EXPECT_TRUE(server_.WaitFor(OfTokens("linserve_queue_sequences"), 1));
  caller.Close();
  std::thread third([&] {
    int status = 429;  // stays so until the server has seen it
    while (status == 429) status = Post(kInfer, ThreeTokens().dump()).status;
    EXPECT_EQ(status, 200);
  });
  EXPECT_TRUE(server_.WaitFor(Abandoned("queue"), 1));
  server_.tokens().LetGo();
  first.join();
  third.join();
  EXPECT_EQ(server_.tokens().computed(), 2);
}

}  // namespace
}  // namespace linserve
