#include "engine/result_cache.h"

#include <random>
#include <thread>

#include "support/fakes/engine_fixture.h"

namespace linserve {
namespace {

using namespace std::chrono_literals;

class ResultCacheTest : public EngineTest {
 protected:
  ResultCacheTest() { options_.cache_bytes = 1 << 20; }

  // Submits a sequence of which all elements are `value`.
  absl::Status Ask(const std::shared_ptr<RecordingSink>& sink, float value,
                   TimePoint deadline = TimePoint::max(), Pooling pooling = Pooling::kNone) {
    Item item = FakeItem(3, value);
    item.options.pooling = pooling;
    Request request{.id = "r", .items = {}, .deadline = deadline, .sink = sink};
    request.items.emplace_back(std::move(item));
    return engine_->Submit(request);
  }

  std::vector<float> Answer(float value, Pooling pooling = Pooling::kNone) {
    const auto sink = std::make_shared<RecordingSink>();
    EXPECT_TRUE(Ask(sink, value, TimePoint::max(), pooling).ok());
    return Rows(sink->Await(0));
  }

  double Lookups(const std::string& outcome) const {
    return Scraped(metrics_.Scrape())[R"(linserve_cache_lookups_total{model="m",outcome=")" +
                                      outcome + R"(",version="1"})"];
  }

  int64_t computed() const {
    int64_t sequences = 0;
    for (const int64_t size : control_->batch_sizes()) sequences += size;
    return sequences;
  }
};

TEST_F(ResultCacheTest, ComputesIdenticalSequencesOnce) {
  Start();
  EXPECT_EQ(Answer(1), FakeResult(3, 1));
  EXPECT_EQ(Answer(2), FakeResult(3, 2));
  EXPECT_EQ(Answer(1), FakeResult(3, 1));
  EXPECT_EQ(computed(), 2);
  EXPECT_EQ(Lookups("hit"), 1);
  EXPECT_EQ(Lookups("miss"), 2);
  EXPECT_GT(Metric("cache_bytes"), 0);
  const ModelFigures figures = model_.statistics().Read();
  EXPECT_EQ(figures.cache_hit.count, 1U);
  EXPECT_EQ(figures.cache_miss.count, 2U);
  engine_.reset();
  EXPECT_EQ(Metric("cache_bytes"), 0);
}

TEST_F(ResultCacheTest, TellsApartWhatIsAskedForInAnotherWay) {
  Start();
  Answer(1);
  Answer(1, Pooling::kMean);
  EXPECT_EQ(computed(), 2);
}

TEST_F(ResultCacheTest, SharesAComputationThatIsUnderWay) {
  Start();
  Occupy();
  const auto second = std::make_shared<RecordingSink>();
  EXPECT_TRUE(Ask(sink_, 1).ok());
  EXPECT_TRUE(Ask(second, 1).ok());
  EXPECT_EQ(Lookups("joined"), 1);
  control_->LetGo();
  EXPECT_EQ(Rows(sink_->Await(0)), FakeResult(3, 1));
  EXPECT_EQ(Rows(second->Await(0)), FakeResult(3, 1));
  EXPECT_EQ(computed(), 2);  // the occupant's and one more
}

TEST_F(ResultCacheTest, ComputesOnForThoseWhoStay) {
  Start();
  Occupy();
  const auto stays = std::make_shared<RecordingSink>();
  EXPECT_TRUE(Ask(sink_, 1).ok());
  EXPECT_TRUE(Ask(stays, 1).ok());
  sink_->Abandon();
  control_->LetGo();
  EXPECT_EQ(Rows(stays->Await(0)), FakeResult(3, 1));
  EXPECT_EQ(Metric("abandoned_total", R"(stage="queue",)"), 1);
}

TEST_F(ResultCacheTest, ComputesForThoseWhoStayWhereTheFirstOneIsLate) {
  Start(clock_);
  Occupy();
  const auto stays = std::make_shared<RecordingSink>();
  EXPECT_TRUE(Ask(sink_, 1, clock_.Now() + 5ms).ok());
  EXPECT_TRUE(Ask(stays, 1, clock_.Now() + 1h).ok());
  clock_.Advance(5ms);
  // The first one is answered by the timer, while the worker computes something else.
  EXPECT_THAT(sink_->Await(0), IsStatus(absl::StatusCode::kDeadlineExceeded, "deadline passed"));
  EXPECT_EQ(occupant_->delivered(), 0u);
  control_->LetGo();
  EXPECT_EQ(Rows(stays->Await(0)), FakeResult(3, 1));
}

TEST_F(ResultCacheTest, AnswersWhoSharesAComputationAtTheirOwnDeadlines) {
  Start(clock_);
  control_->Hold();
  EXPECT_TRUE(Ask(sink_, 1).ok());
  control_->AwaitHeld(1);
  const auto hasty = std::make_shared<RecordingSink>();
  EXPECT_TRUE(Ask(hasty, 1, clock_.Now() + 5ms).ok());
  EXPECT_EQ(Lookups("joined"), 1);
  clock_.Advance(5ms);
  EXPECT_THAT(hasty->Await(0), IsStatus(absl::StatusCode::kDeadlineExceeded, "deadline passed"));
  EXPECT_EQ(sink_->delivered(), 0u);
  control_->LetGo();
  EXPECT_EQ(Rows(sink_->Await(0)), FakeResult(3, 1));
}

TEST_F(ResultCacheTest, BeginsAnewForWhoComesAfterAComputationWasGivenUp) {
  control_->steps = 2;
  const auto late = std::make_shared<RecordingSink>();
  int given_up = 0;
  Start();
  control_->Hold();
  EXPECT_TRUE(Ask(sink_, 1).ok());
  control_->AwaitHeld(1);
  // The cancelled pass has found that nobody waits, and is not at its end yet.
  control_->on_failure = [&] {
    if (given_up++ > 0) return;
    EXPECT_TRUE(Ask(late, 1).ok());
  };
  sink_->Abandon();
  control_->LetGo();
  EXPECT_TRUE(absl::IsCancelled(sink_->Await(0).status()));
  EXPECT_EQ(Rows(late->Await(0)), FakeResult(3, 1));
}

TEST_F(ResultCacheTest, CancelsNobodyWhoStillWaitsHoweverTheOthersLeave) {
  options_.cache_bytes = 600;  // two results: most are computed
  options_.replicas = 2;
  control_->steps = 3;
  control_->slices = 3;
  Start();
  std::atomic<int> answered = 0;
  std::vector<std::jthread> callers;
  for (unsigned thread = 0; thread < 4; ++thread) {
    callers.emplace_back([&, thread] {
      std::mt19937 random(thread);
      for (int i = 0; i < 300; ++i) {
        const auto value = static_cast<float>(random() % 5);
        const auto sink = std::make_shared<RecordingSink>();
        const bool leaves = random() % 2 == 0;
        const TimePoint deadline =
            random() % 4 == 0 ? SteadyClock().Now() + 200us : TimePoint::max();
        if (!Ask(sink, value, deadline).ok()) continue;  // the deadline is too near
        if (leaves) sink->Abandon();
        const auto result = sink->Await(0);
        EXPECT_THAT(sink->Of(0), testing::SizeIs(1));
        if (result.ok()) {
          ASSERT_EQ(Rows(result), FakeResult(3, value));
          ++answered;
        } else {
          EXPECT_TRUE(leaves || deadline != TimePoint::max()) << result.status();
        }
      }
    });
  }
  callers.clear();
  EXPECT_GT(answered, 300);
}

TEST_F(ResultCacheTest, LetsThePriorityOfWhoeverJoinsCount) {
  options_.policy.max_sequences = 1;
  Start();
  Occupy();
  const auto ask = [&](const auto& sink, float value, Priority priority) {
    Request request{.id = "r", .items = {}, .priority = priority, .sink = sink};
    request.items.emplace_back(FakeItem(3, value));
    EXPECT_TRUE(engine_->Submit(request).ok());
  };
  const auto other = std::make_shared<RecordingSink>();
  const auto joins = std::make_shared<RecordingSink>();
  ask(sink_, 1, Priority::kLow);
  ask(other, 2, Priority::kNormal);
  ask(joins, 1, Priority::kHigh);
  control_->Allow(2);
  EXPECT_TRUE(sink_->Await(0).ok());
  EXPECT_TRUE(joins->Await(0).ok());
  EXPECT_EQ(other->delivered(), 0u);
  control_->LetGo();
  EXPECT_TRUE(other->Await(0).ok());
}

// Under overload, the deadlines of cached sequences keep the queue from filling with what comes too
// late, as they do without a cache.
TEST_F(ResultCacheTest, RefusesWhatWouldComeTooLate) {
  options_.replicas = 1;
  options_.policy.max_sequences = 1;
  Start(clock_);
  Occupy();  // one token in 10 ms
  clock_.Advance(10ms);
  control_->LetGo();
  occupant_->AwaitDeliveries(1);
  control_->Hold();
  EXPECT_TRUE(Ask(std::make_shared<RecordingSink>(), 50).ok());
  control_->AwaitHeld(1);
  const TimePoint deadline = clock_.Now() + 100ms;  // time for one of three tokens, and its wait
  EXPECT_TRUE(Ask(sink_, 1, deadline).ok());
  absl::Status refused;
  for (int value = 2; value < 10 && refused.ok(); ++value) {
    refused = Ask(std::make_shared<RecordingSink>(), static_cast<float>(value), deadline);
  }
  EXPECT_THAT(refused, IsStatus(absl::StatusCode::kResourceExhausted, "the deadline is in 100.0"));
  control_->LetGo();
  EXPECT_TRUE(sink_->Await(0).ok());
}

TEST_F(ResultCacheTest, DropsWhatNobodyWaitsForAnyMore) {
  Start();
  Occupy();
  const auto other = std::make_shared<RecordingSink>();
  EXPECT_TRUE(Ask(sink_, 1).ok());
  EXPECT_TRUE(Ask(other, 1, SteadyClock().Now()).ok());  // its deadline is past
  sink_->Abandon();
  control_->LetGo();
  EXPECT_FALSE(sink_->Await(0).ok());
  EXPECT_FALSE(other->Await(0).ok());
  EXPECT_EQ(Metric("abandoned_total", R"(stage="queue",)"), 2);
  EXPECT_EQ(computed(), 1);  // the occupant's
}

TEST_F(ResultCacheTest, KeepsNoFailure) {
  std::atomic<bool> fails = true;
  control_->fault = [&](const Batch&) { return fails ? Fault::kStepFails : Fault::kNone; };
  Start();
  EXPECT_TRUE(Ask(sink_, 1).ok());
  EXPECT_FALSE(sink_->Await(0).ok());
  fails = false;
  EXPECT_EQ(Answer(1), FakeResult(3, 1));
}

TEST_F(ResultCacheTest, ForgetsTheLeastRecentlyUsed) {
  options_.cache_bytes = 1000;  // a result takes some 250
  Start();
  Answer(1);
  Answer(2);
  Answer(1);
  EXPECT_EQ(Lookups("hit"), 1);
  for (int value = 3; value < 20; ++value) {
    Answer(1);
    Answer(static_cast<float>(value));
  }
  EXPECT_EQ(Lookups("hit"), 18);
  Answer(2);
  EXPECT_EQ(Lookups("hit"), 18);
  EXPECT_LE(Metric("cache_bytes"), 1000);
}

TEST_F(ResultCacheTest, RefusesAsAWholeWhatIsWhollyNew) {
  options_.limits.max_sequences = 1;
  Start();
  Occupy();
  EXPECT_TRUE(Ask(sink_, 1).ok());
  const auto refused = std::make_shared<RecordingSink>();
  EXPECT_TRUE(absl::IsResourceExhausted(Ask(refused, 2)));
  EXPECT_EQ(refused->delivered(), 0U);
  // A sequence that joins takes no room.
  const auto joined = std::make_shared<RecordingSink>();
  EXPECT_TRUE(Ask(joined, 1).ok());
  control_->LetGo();
  EXPECT_TRUE(joined->Await(0).ok());
  EXPECT_EQ(Answer(2), FakeResult(3, 2));
}

TEST_F(ResultCacheTest, RefusesOneByOneWhereOthersAreAnswered) {
  options_.limits.max_sequences = 1;
  Start();
  Answer(1);
  Occupy();
  EXPECT_TRUE(Ask(occupant_, 9).ok());
  Request request{.id = "r", .items = {}, .deadline = TimePoint::max(), .sink = sink_};
  request.items.emplace_back(FakeItem(3, 1));
  request.items.emplace_back(FakeItem(3, 2));
  EXPECT_TRUE(engine_->Submit(request).ok());
  EXPECT_EQ(Rows(sink_->Await(0)), FakeResult(3, 1));
  EXPECT_TRUE(absl::IsResourceExhausted(sink_->Await(1).status()));
}

TEST_F(ResultCacheTest, AnswersEveryCallerOfManyThreads) {
  options_.cache_bytes = 2000;
  options_.replicas = 2;
  Start();
  std::vector<std::jthread> callers;
  for (int thread = 0; thread < 4; ++thread) {
    callers.emplace_back([&] {
      for (int i = 0; i < 300; ++i) {
        const auto value = static_cast<float>(i % 7);
        ASSERT_EQ(Answer(value), FakeResult(3, value));
      }
    });
  }
  callers.clear();
  EXPECT_EQ(Lookups("hit") + Lookups("joined") + Lookups("miss"), 1200);
}

TEST_F(ResultCacheTest, CopiesNothingThatItCannotKeep) {
  options_.cache_bytes = 10;
  Start();
  EXPECT_EQ(Answer(1), FakeResult(3, 1));
  EXPECT_EQ(Answer(1), FakeResult(3, 1));
  EXPECT_EQ(computed(), 2);
  EXPECT_EQ(Lookups("miss"), 2);
  EXPECT_EQ(Metric("cache_bytes"), 0);
}

}  // namespace
}  // namespace linserve
