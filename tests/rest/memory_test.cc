#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rest/json/tensor_json.h"
#include "rest/rest_fixture.h"
#include "support/fakes/failing_allocations.h"

namespace linserve {
namespace {

using nlohmann::json;
using testing::HasSubstr;

using RestMemory = RestTest;

TEST_F(RestMemory, ThatIsMissingToWriteAnAnswerIsHowItsRequestEnded) {
  json request = ThreeTokens();
  request["id"] = "7";
  json& input = request["inputs"][0];
  input["shape"] = {1, kTestLongest};
  input["data"] = std::vector<int64_t>(kTestLongest, 5);
  const std::string body = request.dump();
  Reply reply;
  {
    const FailingAllocations failing(kTestLongest * 4 * kLongestElement);
    reply = Post(kInfer, body);
    EXPECT_GT(failing.failed(), 0U);
  }
  EXPECT_EQ(reply.status, 429) << reply.body.substr(0, 200);
  EXPECT_THAT(reply.body, HasSubstr("[request id: 7]"));
  const auto requests = [](const char* code) {
    return "linserve_requests_total{code=\"" + std::string(code) +
           R"(",model="tokens",rpc="/v2/models/infer"})";
  };
  EXPECT_TRUE(server_.WaitFor(requests("RESOURCE_EXHAUSTED"), 1));
  EXPECT_FALSE(server_.Scrape()[requests("OK")] > 0);
}

}  // namespace
}  // namespace linserve
