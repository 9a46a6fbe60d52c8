#include <new>

#include "repository/model_manager_fixture.h"
#include "support/wait_until.h"

namespace linserve {
namespace {

using testing::ElementsAre;

TEST_F(ModelManagerTest, LoadsNoMoreThanTheMemoryItMayUse) {
  Write("a", "x");
  Manage("all", {}, 2000);
  EXPECT_TRUE(Refresh().ok());
  Write("b", "x");
  EXPECT_THAT(Refresh(), IsStatus(kExhaustedCode,
                                  "model 'b' version 1 needs 1.2 KiB for its weights, but 766 B "
                                  "are left of 2.0 KiB"));
  EXPECT_EQ(loads_, 1);
  EXPECT_THAT(Index(), ElementsAre("a 1 READY", "b 1 UNAVAILABLE"));
}

TEST_F(ModelManagerTest, LoadsWhatFitsOnceAnotherModelIsGone) {
  Write("a", "x");
  Manage("all", {}, 2000);
  EXPECT_TRUE(Refresh().ok());
  Write("b", "x");
  EXPECT_FALSE(Refresh().ok());
  EXPECT_THAT(Index(), ElementsAre("a 1 READY", "b 1 UNAVAILABLE"));
  Remove("a");
  EXPECT_TRUE(Refresh().ok());
  EXPECT_THAT(Index(), ElementsAre("b 1 READY"));
}

TEST_F(ModelManagerTest, DoesNotTryAgainToLoadWhatWasUnloaded) {
  Write("a", "x");
  Manage("all", {}, 2000);
  EXPECT_TRUE(Refresh().ok());
  Write("b", "x");
  EXPECT_FALSE(Refresh().ok());
  EXPECT_TRUE(Unload("b").ok());
  EXPECT_TRUE(Unload("a").ok());
  EXPECT_TRUE(Refresh().ok());
  EXPECT_THAT(Index(), ElementsAre("a 1 UNAVAILABLE", "b 1 UNAVAILABLE"));
}

TEST_F(ModelManagerTest, KeepsWhatIsServedWhereItsSuccessorDoesNotFit) {
  Write("a", "x");
  Manage("all", {}, 2000);
  EXPECT_TRUE(Refresh().ok());
  const auto before = *repository_.Find("a", 1);
  Write("a", "y");
  EXPECT_THAT(Refresh(), IsStatus(kExhaustedCode, "needs 1.2 KiB for its weights, but 766 B"));
  EXPECT_EQ(*repository_.Find("a", 1), before);
  EXPECT_THAT(repository_.Index()[0].reason, testing::HasSubstr("needs 1.2 KiB"));
  EXPECT_EQ(loads_, 1);
}

TEST_F(ModelManagerTest, CountsModelsThatWereReplacedAndStillAnswer) {
  patience_ = {};
  Write("a", "x");
  Manage("all", {}, 3000);
  EXPECT_TRUE(Refresh().ok());
  control_->Hold();
  Request request = Of(occupant_, {1});
  ASSERT_TRUE((*repository_.Find("a", 1))->engine->Submit(request).ok());
  control_->AwaitHeld(1);
  Write("a", "y");
  EXPECT_TRUE(Refresh().ok());
  EXPECT_EQ(repository_.weight_bytes(), 2 * kFakeModelBytes);
  Write("a", "z");
  EXPECT_THAT(Refresh(), IsStatus(kExhaustedCode, "that were replaced and still answer"));
  control_->LetGo();
  EXPECT_TRUE(occupant_->Await(0).ok());
  EXPECT_TRUE(WaitUntil([&] { return repository_.weight_bytes() == kFakeModelBytes; }));
  EXPECT_TRUE(Refresh().ok());
  EXPECT_EQ(loads_, 3);
}

TEST_F(ModelManagerTest, SurvivesALoadThatRunsOutOfMemory) {
  Write("a", "x");
  Manage();
  EXPECT_TRUE(Refresh().ok());
  Write("a", "y");
  on_load_ = [] { throw std::bad_alloc(); };
  EXPECT_TRUE(absl::IsResourceExhausted(Refresh()));
  EXPECT_TRUE(repository_.Find("a", 1).ok());
  on_load_ = [] {};
  EXPECT_TRUE(Refresh().ok());
}

TEST_F(ModelManagerTest, ThatIsDrainedLoadsNothingMore) {
  for (int i = 0; i < 100; ++i) Write("m" + std::to_string(i), "x");
  Manage();
  on_load_ = [&] { manager_->Close(); };
  EXPECT_THAT(Refresh(), IsStatus(kUnavailableCode, "draining"));
  EXPECT_EQ(loads_, 1);
  EXPECT_TRUE(absl::IsUnavailable(LoadByName("m5")));
  EXPECT_TRUE(manager_->Drain(TimePoint::max()));
}

TEST_F(ModelManagerTest, EndsWhatIsLeftToDoWithAStatus) {
  Write("a", "x");
  Manage();
  EXPECT_TRUE(Refresh().ok());
  std::vector<std::future<absl::Status>> results;
  for (int i = 0; i < 20; ++i) {
    auto promise = std::make_shared<std::promise<absl::Status>>();
    results.push_back(promise->get_future());
    manager_->Load("a", [promise](const absl::Status& status) { promise->set_value(status); });
  }
  manager_.reset();
  for (auto& result : results) {
    const absl::Status status = result.get();
    EXPECT_TRUE(status.ok() || absl::IsUnavailable(status)) << status;
  }
}

}  // namespace
}  // namespace linserve
