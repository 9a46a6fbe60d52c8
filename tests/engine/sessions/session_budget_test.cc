#include "engine/sessions/session_budget.h"

#include <gmock/gmock.h>

#include "support/fakes/engine_fixture.h"

namespace linserve {
namespace {

using testing::HasSubstr;

TEST(SessionBudget, BoundsWhatAllTakeAndEachCallersShare) {
  SessionBudget budget(100, 60);
  EXPECT_EQ(budget.Take("a", 60), SessionRoom::kTaken);
  EXPECT_EQ(budget.Take("a", 1), SessionRoom::kShareFull);
  EXPECT_EQ(budget.Take("b", 41), SessionRoom::kFull);
  EXPECT_EQ(budget.Take("b", 40), SessionRoom::kTaken);
  budget.Give("a", 60);
  EXPECT_EQ(budget.Take("b", 20), SessionRoom::kTaken);
  EXPECT_EQ(budget.Take("b", 1), SessionRoom::kShareFull);
  EXPECT_EQ(budget.Take("c", INT64_MAX), SessionRoom::kShareFull);
}

// Runs two engines whose sessions have one budget, of four sessions and three a caller.
class SharedSessionBudget : public EngineTest {
 protected:
  SharedSessionBudget() {
    control_->sessions = true;
    options_.sessions.budget =
        std::make_shared<SessionBudget>(9 * kFakeSessionBytes / 2, 7 * kFakeSessionBytes / 2);
    first_ = StartFor("m");
    second_ = StartFor("n");
  }

  std::unique_ptr<Engine> StartFor(const std::string& model) {
    return *Engine::Start(options_, FakeModelFactory(control_), metrics_.ForModel(model, 1));
  }

  // Starts a session, and returns what its caller is told.
  static absl::Status Begin(Engine& engine, const std::string& id, const std::string& caller) {
    return Send(engine, {.id = id, .start = true}, caller);
  }
  static absl::Status GoOn(Engine& engine, const std::string& id, const std::string& caller) {
    return Send(engine, {.id = id}, caller);
  }

  double Sessions(const std::string& model) const {
    return Scraped(metrics_.Scrape())["linserve_sessions{model=\"" + model + R"(",version="1"})"];
  }

  std::unique_ptr<Engine> first_;
  std::unique_ptr<Engine> second_;

 private:
  static absl::Status Send(Engine& engine, const SessionChunk& chunk, const std::string& caller) {
    const auto sink = std::make_shared<RecordingSink>();
    Request request = Of(sink, {1});
    request.caller = caller;
    request.items[0]->chunk = std::make_shared<const SessionChunk>(chunk);
    const absl::Status status = engine.Submit(request);
    return status.ok() ? sink->Await(0).status() : status;
  }
};

TEST_F(SharedSessionBudget, LetsWhatWasNotUsedForLongestGoWhicheverModelItIsOf) {
  EXPECT_TRUE(Begin(*first_, "oldest", "a").ok());
  EXPECT_TRUE(Begin(*second_, "used", "a").ok());
  EXPECT_TRUE(Begin(*first_, "1", "b").ok());
  EXPECT_TRUE(Begin(*second_, "2", "b").ok());
  EXPECT_EQ(Sessions("m") + Sessions("n"), 4);
  EXPECT_TRUE(Begin(*second_, "3", "b").ok());
  EXPECT_EQ(Sessions("m"), 1);
  EXPECT_EQ(Sessions("n"), 3);
  EXPECT_THAT(GoOn(*first_, "oldest", "a").message(), HasSubstr("was evicted for others"));
  EXPECT_TRUE(GoOn(*second_, "used", "a").ok());
}

TEST_F(SharedSessionBudget, TakesFromThoseWhoHaveTheMost) {
  EXPECT_TRUE(Begin(*first_, "only", "little").ok());
  for (const char* id : {"1", "2", "3"}) EXPECT_TRUE(Begin(*second_, id, "much").ok());
  EXPECT_TRUE(Begin(*first_, "new", "another").ok());
  EXPECT_TRUE(GoOn(*first_, "only", "little").ok());
  EXPECT_THAT(GoOn(*second_, "1", "much").message(), HasSubstr("was evicted for others"));
}

TEST_F(SharedSessionBudget, TakesFromACallerPastItsShareWhatIsItsOwn) {
  EXPECT_TRUE(Begin(*first_, "other", "a").ok());
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(Begin(*first_, std::to_string(i), "greedy").ok());
  EXPECT_TRUE(GoOn(*first_, "other", "a").ok());
  EXPECT_TRUE(GoOn(*first_, "17", "greedy").ok());
  EXPECT_FALSE(GoOn(*first_, "16", "greedy").ok());
}

TEST_F(SharedSessionBudget, TakesFromACallerPastItsShareWhatItHasInAnotherModel) {
  EXPECT_TRUE(Begin(*first_, "0", "b").ok());
  for (const char* id : {"1", "2", "3"}) EXPECT_TRUE(Begin(*first_, id, "a").ok());
  EXPECT_TRUE(Begin(*second_, "4", "a").ok());
  EXPECT_FALSE(GoOn(*first_, "1", "a").ok());
  EXPECT_TRUE(GoOn(*first_, "2", "a").ok());
  EXPECT_TRUE(GoOn(*first_, "0", "b").ok());
  EXPECT_EQ(Sessions("m"), 3);
}

TEST_F(SharedSessionBudget, RefusesWhatNothingCanMakeRoomFor) {
  options_.sessions.budget =
      std::make_shared<SessionBudget>(9 * kFakeSessionBytes, kFakeSessionBytes / 2);
  const auto small = StartFor("o");
  EXPECT_THAT(Begin(*small, "1", "a"), IsStatus(kExhaustedCode, "max_session_bytes_per_caller"));
}

TEST_F(SharedSessionBudget, HasBackWhatAnEngineTookThatHasEnded) {
  for (const char* id : {"1", "2", "3"}) EXPECT_TRUE(Begin(*first_, id, "a").ok());
  first_.reset();
  for (const char* id : {"1", "2", "3"}) EXPECT_TRUE(Begin(*second_, id, "a").ok());
  EXPECT_EQ(Sessions("n"), 3);
}

}  // namespace
}  // namespace linserve
