#include "engine/engine.h"

#include <algorithm>
#include <fstream>
#include <thread>

#include "support/fakes/engine_fixture.h"
#include "support/wait_until.h"

namespace linserve {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

TEST_F(EngineTest, GivesEachSequenceItsOwnRowsInEveryPadding) {
  for (const Padding padding :
       {Padding::kPacked, Padding::kBucket, Padding::kFixed, Padding::kZeros}) {
    options_.padding = padding;
    Start();
    const auto sink = std::make_shared<RecordingSink>();
    Request request{.id = "r", .items = {}, .sink = sink};
    request.items = {FakeItem(3, 1), FakeItem(1, 2), FakeItem(64, 3)};
    ASSERT_TRUE(engine_->Submit(request).ok());
    sink->AwaitDeliveries(3);
    EXPECT_EQ(Rows(sink->Await(0)), FakeResult(3, 1)) << Name(padding);
    EXPECT_EQ(Rows(sink->Await(1)), FakeResult(1, 2)) << Name(padding);
    EXPECT_EQ(Rows(sink->Await(2)), FakeResult(64, 3)) << Name(padding);
    EXPECT_EQ(sink->Await(2)->tokens, 64);
  }
}

TEST_F(EngineTest, FormsTheNextBatchWhileOneIsComputed) {
  Start();
  Occupy();
  EXPECT_TRUE(Submit(sink_, {1, 2}).ok());
  const auto other = std::make_shared<RecordingSink>();
  EXPECT_TRUE(Submit(other, {3}).ok());
  control_->LetGo();
  sink_->AwaitDeliveries(2);
  EXPECT_THAT(control_->batch_sizes(), ElementsAre(1, 3));
  EXPECT_EQ(other->Await(0)->timing.batch_sequences, 3);
  EXPECT_EQ(other->Await(0)->timing.batch_tokens, 6);
}

TEST_F(EngineTest, GivesALongStepUpWithinWhenItsCallerLeaves) {
  control_->slices = 1000000;
  Start();
  control_->Hold();
  EXPECT_TRUE(Submit(sink_, {40}).ok());
  control_->AwaitHeld(1);
  sink_->Abandon();
  control_->LetGo();
  EXPECT_TRUE(absl::IsCancelled(sink_->Await(0).status()));
  EXPECT_LT(control_->steps_done(), 10);
  EXPECT_EQ(Metric("abandoned_total", R"(stage="batch",)"), 1);
}

TEST_F(EngineTest, ReportsHowFarALongPassIsToThoseWhoAsk) {
  control_->steps = 2;
  control_->slices = 4;
  control_->on_step = [&] { clock_.Advance(60ms); };
  Start(clock_);
  Request request = Of(sink_, {40, 40});
  request.items[0]->report_progress = true;
  ASSERT_TRUE(engine_->Submit(request).ok());
  sink_->AwaitDeliveries(2);
  std::vector<int64_t> rows;
  for (const ItemProgress& progress : sink_->ReportsOf(0)) {
    EXPECT_EQ(progress.rows, 80);
    rows.push_back(80 * progress.layers_done + progress.rows_done);
  }
  // Reports come every second slice, 100 ms at least after the one before.
  EXPECT_THAT(rows, ElementsAre(40, 80, 120));
  EXPECT_TRUE(sink_->ReportsOf(1).empty());
}

TEST_F(EngineTest, RefusesWhatDoesNotFitIntoTheQueueAndTakesNothingOfIt) {
  options_.limits.max_sequences = 2;
  Start();
  Occupy();
  Request request = Of(sink_, {1, 2, 3});
  request.items.emplace_back(absl::InvalidArgumentError("broken on the wire"));
  EXPECT_THAT(engine_->Submit(request), IsStatus(absl::StatusCode::kResourceExhausted, "queue"));
  EXPECT_THAT(request.items, SizeIs(4));
  EXPECT_EQ(sink_->delivered(), 0u);
  EXPECT_EQ(Metric("rejected_total", R"(reason="queue",)"), 1);
}

TEST_F(EngineTest, MeasuresWhereTheTimeOfASequenceWent) {
  control_->steps = 2;
  Start(clock_);
  Occupy();
  EXPECT_TRUE(Submit(sink_, {3, 2}).ok());
  clock_.Advance(5ms);
  control_->LetGo();
  sink_->AwaitDeliveries(2);
  const Timing occupant = occupant_->Await(0)->timing;
  EXPECT_EQ(occupant.queue, 0ms);
  EXPECT_EQ(occupant.compute, 5ms);
  const Timing waited = sink_->Await(0)->timing;
  EXPECT_EQ(waited.queue, 5ms);
  EXPECT_EQ(waited.batch, 0ms);
  EXPECT_EQ(waited.compute, 0ms);
  EXPECT_EQ(waited.batch_sequences, 2);
  EXPECT_EQ(waited.batch_tokens, 5);
  EXPECT_EQ(Metric("queue_duration_seconds_sum"), 0.01);  // sum over two sequences
  EXPECT_EQ(Metric("compute_duration_seconds_sum", R"(phase="forward",)"), 0.005);
}

// What a replica's first rows take, with all that is made for them, says nothing of many rows.
TEST_F(EngineTest, EstimatesTheDelayFromTheFullestBatchOfTheWarmUp) {
  options_.warmup = true;
  options_.replicas = 1;
  options_.policy.max_tokens = 640;
  options_.policy.max_sequences = 10;
  control_->fault = [this](const Batch& batch) {
    clock_.Advance(batch.size() == 10 ? 64ms : 500ms);
    return Fault::kNone;
  };
  Start(clock_);
  Occupy();
  EXPECT_TRUE(Submit(sink_, {50}).ok());
  EXPECT_EQ(engine_->DelayEstimate(), 5ms);
  control_->LetGo();
}

TEST_F(EngineTest, EstimatesTheDelayFromRealTokensWhateverThePadding) {
  for (const Padding padding : {Padding::kPacked, Padding::kFixed}) {
    options_.padding = padding;
    options_.replicas = 1;
    Start(clock_);
    EXPECT_EQ(engine_->DelayEstimate(), 0ns);
    occupant_ = std::make_shared<RecordingSink>();
    Occupy();  // one token
    clock_.Advance(4ms);
    control_->LetGo();
    occupant_->AwaitDeliveries(1);
    Occupy();
    EXPECT_TRUE(Submit(sink_, {10}).ok());
    EXPECT_EQ(engine_->DelayEstimate(), 40ms) << Name(padding);
    EXPECT_EQ(Metric("queue_delay_estimate_seconds"), 0.04);
    control_->LetGo();
  }
}

TEST_F(EngineTest, FinishesWhatItAcceptedAndRefusesTheRestWhenItDrains) {
  Start();
  Occupy();
  EXPECT_TRUE(Submit(sink_, {1, 2}).ok());
  engine_->StopAccepting();
  EXPECT_THAT(Submit(sink_, {5}), IsStatus(absl::StatusCode::kUnavailable, "draining"));
  EXPECT_EQ(Metric("rejected_total", R"(reason="draining",)"), 1);
  control_->LetGo();
  EXPECT_EQ(engine_->Drain(TimePoint::max()), 0u);
  EXPECT_TRUE(occupant_->Await(0).ok());
  EXPECT_EQ(sink_->delivered(), 2u);
  EXPECT_EQ(Rows(sink_->Await(1)), FakeResult(2));
}

TEST_F(EngineTest, GivesUpWhatStillWaitsAtTheDeadlineOfADrain) {
  Start(clock_);
  Occupy();
  EXPECT_TRUE(Submit(sink_, {1, 2}).ok());
  const TimePoint deadline = clock_.Now() + 30s;
  std::jthread drain([&] { EXPECT_EQ(engine_->Drain(deadline), 2u); });
  clock_.AwaitWaiters(deadline);
  clock_.Advance(30s);
  drain.join();
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_THAT(sink_->Of(i), ElementsAre(IsStatus(absl::StatusCode::kUnavailable, "draining")));
  }
  // What is being computed is not given up.
  EXPECT_THAT(occupant_->Of(0), IsEmpty());
  control_->LetGo();
  EXPECT_TRUE(occupant_->Await(0).ok());
}

TEST_F(EngineTest, AnswersWhatWaitsBeforeItIsDestroyed) {
  Start();
  Occupy();
  EXPECT_TRUE(Submit(sink_, {1, 2, 3}).ok());
  control_->LetGo();
  engine_.reset();
  EXPECT_EQ(sink_->delivered(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(sink_->Await(i).ok());
}

TEST_F(EngineTest, StartsABatchBeforeItWaitsForTheOneOnTheDevice) {
  control_->asynchronous = true;
  options_.policy.max_sequences = 1;
  Start();
  Occupy();
  EXPECT_TRUE(Submit(sink_, {1, 2}).ok());
  control_->LetGo();
  sink_->AwaitDeliveries(2);
  occupant_->AwaitDeliveries(1);
  EXPECT_THAT(control_->events(), ElementsAre("start", "start", "take", "start", "take", "take"));
  EXPECT_EQ(Rows(sink_->Await(1)), FakeResult(2));
}

// Returns how often this process has read from a file or another descriptor.
int64_t ReadsSoFar() {
  std::ifstream io("/proc/self/io");
  std::string name;
  int64_t count = -1;
  while (io >> name >> count) {
    if (name == "syscr:") return count;
  }
  return -1;
}

// What the system says of processors and memory stands in files, which take longer than a request.
TEST_F(EngineTest, ReadsNoFileForARequest) {
  Start();
  const auto request = [&] {
    const auto sink = std::make_shared<RecordingSink>();
    EXPECT_TRUE(Submit(sink, {1, 2}).ok());  // which are gathered
    sink->AwaitDeliveries(2);
  };
  request();  // what is read once
  constexpr int kRequests = 50;
  const int64_t before = ReadsSoFar();
  ASSERT_GT(before, 0);
  for (int i = 0; i < kRequests; ++i) request();
  EXPECT_LT(ReadsSoFar() - before, kRequests);
}

// Takes results only once a fourth batch is started.
class SlowSink : public RecordingSink {
 public:
  explicit SlowSink(const FakeModelControl& control) : control_(control) {}

  void Deliver(size_t index, Result result) override {
    EXPECT_TRUE(WaitUntil([&] {
      const auto events = control_.events();
      return std::count(events.begin(), events.end(), "start") >= 4;
    }));
    RecordingSink::Deliver(index, std::move(result));
  }

 private:
  const FakeModelControl& control_;
};

TEST_F(EngineTest, StartsABatchWhileResultsOfTheLastButOneAreDelivered) {
  control_->asynchronous = true;
  options_.policy.max_sequences = 1;
  Start();
  Occupy();
  const auto slow = std::make_shared<SlowSink>(*control_);
  EXPECT_TRUE(Submit(slow, {1}).ok());
  EXPECT_TRUE(Submit(sink_, {2, 3}).ok());
  control_->LetGo();
  EXPECT_EQ(Rows(slow->Await(0)), FakeResult(1));
  sink_->AwaitDeliveries(2);
}

TEST_F(EngineTest, StartsABatchAgainThatTheOneBeforeHasLeftNoMemoryFor) {
  control_->asynchronous = true;
  control_->fault = [&](const Batch&) {
    return control_->forwards() > 0 ? Fault::kBadAlloc : Fault::kNone;
  };
  options_.policy.max_sequences = 1;
  Start();
  Occupy();
  EXPECT_TRUE(Submit(sink_, {1, 2}).ok());
  control_->LetGo();
  EXPECT_EQ(Rows(sink_->Await(0)), FakeResult(1));
  EXPECT_EQ(Rows(sink_->Await(1)), FakeResult(2));
  EXPECT_EQ(SplitsFor("memory"), 0);
}

TEST_F(EngineTest, TellsOfItsReplicasAndTheirBytesAsLongAsTheyAreThere) {
  options_.replicas = 2;
  Start();
  const auto other = Engine::Start(options_, FakeModelFactory(control_), model_, SteadyClock());
  ASSERT_TRUE(other.ok());
  const auto bytes = [this] {
    return Scraped(
        metrics_.Scrape())[R"(linserve_model_bytes{device="cpu",model="m",version="1"})"];
  };
  EXPECT_EQ(bytes(), 4 * static_cast<double>(engine_->info().bytes));
  EXPECT_EQ(Metric("replicas"), 4);
  engine_.reset();
  EXPECT_EQ(bytes(), 2 * static_cast<double>(other.value()->info().bytes));
  EXPECT_EQ(Metric("replicas"), 2);
}

TEST_F(EngineTest, CountsTheTimeOnceInWhichReplicasThatShareProcessorsCompute) {
  for (const bool shared : {true, false}) {
    const double before = Metric("busy_seconds_total");
    options_.replicas = 2;
    options_.shared = shared;  // and none computes apart from the other
    Start(clock_);
    control_->Hold();
    EXPECT_TRUE(Submit(occupant_, {1}).ok());
    control_->AwaitHeld(1);
    EXPECT_TRUE(Submit(sink_, {2}).ok());
    control_->AwaitHeld(2);
    clock_.Advance(std::chrono::seconds(2));
    control_->LetGo();
    engine_.reset();
    EXPECT_EQ(Metric("busy_seconds_total") - before, 2);
  }
}

TEST_F(EngineTest, CountsTheTimeInWhichItComputesBeforeALongPassIsOver) {
  control_->slices = 3;
  control_->before_slice = [this](const Batch&) { clock_.Advance(std::chrono::seconds(1)); };
  Start(clock_);
  Occupy();
  control_->Allow(1);
  EXPECT_TRUE(WaitUntil([&] { return Metric("busy_seconds_total") == 1; }));
  EXPECT_EQ(occupant_->delivered(), 0u);
  control_->LetGo();
  occupant_->AwaitDeliveries(1);
  engine_.reset();
  EXPECT_EQ(Metric("busy_seconds_total"), 3);
}

TEST_F(EngineTest, CountsTheWeightsOnceThatItsReplicasShare) {
  options_.replicas = 2;
  options_.shared = true;
  Start();
  const auto bytes = [this] {
    return Scraped(
        metrics_.Scrape())[R"(linserve_model_bytes{device="cpu",model="m",version="1"})"];
  };
  EXPECT_GT(bytes(), 0);
  EXPECT_EQ(bytes(), static_cast<double>(engine_->info().bytes));
  EXPECT_EQ(engine_->weight_bytes(), engine_->info().bytes);
  EXPECT_EQ(Metric("replicas"), 2);
  engine_.reset();
  EXPECT_EQ(bytes(), 0);
}

// Has no memory for what it is told.
class FailingSink : public RecordingSink {
 public:
  void Deliver(size_t /*index*/, Result /*result*/) override {
    told_ = true;
    throw std::bad_alloc();
  }
  bool told() const { return told_; }

 private:
  std::atomic<bool> told_ = false;
};

TEST_F(EngineTest, GoesOnWhereABatchIsLostForWantOfMemory) {
  Start();
  const auto failing = std::make_shared<FailingSink>();
  Request request = Of(failing, {1, 2});
  EXPECT_TRUE(engine_->Submit(request).ok());
  EXPECT_TRUE(WaitUntil([&] { return failing->told(); }));
  EXPECT_TRUE(Submit(sink_, {3}).ok());
  EXPECT_TRUE(sink_->Await(0).ok());
}

}  // namespace
}  // namespace linserve
