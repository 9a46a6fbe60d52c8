#include "serving/request.h"

#include <gmock/gmock.h>

#include <memory>
#include <new>
#include <stdexcept>

#include "support/test_files.h"

namespace linserve {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Notes what a request tells its call.
struct Call {
  std::vector<absl::StatusCode> broken;
  std::vector<absl::StatusCode> refused;
  std::vector<absl::StatusCode> ended;
};

// Takes results as it is told to.
class TestRequest : public RequestState {
 public:
  TestRequest(CallSide side, Call& call, std::function<void()> take)
      : RequestState(std::move(side), {.id = "id"}), call_(call), take_(std::move(take)) {}

 private:
  absl::Status ReadOptions(const RpcLimits&, const ServedModel&) override { return {}; }
  absl::Status ReadItems(Tokenization&) override { return {}; }
  void TakeResult(size_t, absl::StatusOr<ItemResult>) override { take_(); }
  void AnswerRefusal(const absl::Status& status) override {
    call_.refused.push_back(status.code());
    take_();
  }

  Call& call_;
  const std::function<void()> take_;
};

class RequestStateTest : public testing::Test {
 protected:
  std::shared_ptr<TestRequest> Make(std::function<void()> take) {
    return std::make_shared<TestRequest>(
        CallSide{.call = nullptr,
                 .metrics = metrics_.ForRpc("Embed"),
                 .abandoned = [] { return false; },
                 .ended = [this](const absl::Status& s) { call_.ended.push_back(s.code()); },
                 .broken = [this](const absl::Status& s) { call_.broken.push_back(s.code()); }},
        call_, std::move(take));
  }

  Metrics metrics_{{}};
  Call call_;
};

TEST_F(RequestStateTest, EndsItsCallOnceWhereAResultCannotBeTaken) {
  auto request = Make([] { throw std::bad_alloc(); });
  request->Deliver(0, ItemResult{});
  request->Deliver(1, absl::InternalError("x"));
  EXPECT_THAT(call_.broken, ElementsAre(absl::StatusCode::kResourceExhausted));
  request.reset();
  EXPECT_THAT(call_.ended, ElementsAre(absl::StatusCode::kResourceExhausted));
}

TEST_F(RequestStateTest, EndsItsCallWhereNotEvenARefusalCanBeSent) {
  auto request = Make([] { throw std::runtime_error("no"); });
  request->Refuse(absl::NotFoundError("x"));
  EXPECT_THAT(call_.broken, ElementsAre(absl::StatusCode::kInternal));
  request->Refuse(absl::NotFoundError("y"));
  EXPECT_THAT(call_.refused, ElementsAre(absl::StatusCode::kNotFound));
}

TEST_F(RequestStateTest, IsRefusedOnce) {
  auto request = Make([] {});
  request->Refuse(absl::NotFoundError("x"));
  request->Refuse(absl::InternalError("y"));
  request.reset();
  EXPECT_THAT(call_.refused, ElementsAre(absl::StatusCode::kNotFound));
  EXPECT_THAT(call_.ended, ElementsAre(absl::StatusCode::kNotFound));
  EXPECT_THAT(call_.broken, IsEmpty());
}

// It was made, and then there was no memory to begin it.
TEST_F(RequestStateTest, ThatNeverBeganDidNotEndWell) {
  Make([] {}).reset();
  EXPECT_THAT(call_.ended, ElementsAre(absl::StatusCode::kResourceExhausted));
}

}  // namespace
}  // namespace linserve
