#include <gmock/gmock.h>

#include <random>

#include "support/fakes/engine_fixture.h"

namespace linserve {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using Lengths = std::vector<int64_t>;
using Sink = std::shared_ptr<RecordingSink>;

constexpr int kSlices = 40;
constexpr std::chrono::nanoseconds kRowOfSlice = 2500ns;  // so that a row takes 100 us
constexpr int64_t kLong = 4000;                           // rows, which take 400 ms

// Passes take time by their rows, on a clock that stands still otherwise. Batches have room for
// whatever comes.
class OvertakingTest : public EngineTest {
 protected:
  OvertakingTest() {
    control_->longest = 8 * kLong;
    control_->slices = kSlices;
    control_->before_slice = [this](const Batch& batch) {
      clock_.Advance(batch.rows * kRowOfSlice);
    };
    control_->fault = [this](const Batch& batch) {
      started_.push_back(batch.axes.at('n').lengths);
      return Fault::kNone;
    };
    options_.policy.max_tokens = int64_t{1} << 20;
    options_.policy.long_rows = 512;
  }

  // Submits the first sequence, and the others while its pass stands in its first slice. Returns
  // once all are answered.
  Sink Compute(int64_t first, const Lengths& others) {
    const auto sink = std::make_shared<RecordingSink>();
    control_->Hold();
    EXPECT_TRUE(Submit(sink, {first}).ok());
    control_->AwaitHeld(1);
    EXPECT_TRUE(others.empty() || Submit(sink_, others).ok());
    control_->LetGo();
    sink->AwaitDeliveries(1);
    sink_->AwaitDeliveries(others.size());
    return sink;
  }

  // Lets the engine learn how long rows take.
  void LearnSpeed() {
    Compute(100, {});
    started_.clear();
  }

  std::vector<Lengths> started_;  // the lengths of each batch, written by the worker
};

TEST_F(OvertakingTest, ShortSequencesGoBetweenTheSlicesOfALongOneWhateverTheBudget) {
  Start(clock_);
  LearnSpeed();
  const Sink sink = Compute(kLong, {64, 32});
  EXPECT_THAT(started_, ElementsAre(Lengths{kLong}, Lengths{64, 32}));
  EXPECT_THAT(control_->events(), ElementsAre("start", "take", "start", "start", "take", "take"));
  EXPECT_EQ(Rows(sink->Await(0)), FakeResult(kLong));
  EXPECT_EQ(Rows(sink_->Await(1)), FakeResult(32));
}

TEST_F(OvertakingTest, APassIsLongOnceItHasTakenLongIfTheSpeedIsNotKnown) {
  Start(clock_);
  Compute(kLong, {64});
  EXPECT_THAT(started_, ElementsAre(Lengths{kLong}, Lengths{64}));
  EXPECT_THAT(control_->events(), ElementsAre("start", "start", "take", "take"));
}

TEST_F(OvertakingTest, LongSequencesShareABatchWithNobody) {
  Start(clock_);
  LearnSpeed();
  Compute(1, {kLong, kLong, 200, 64});
  EXPECT_THAT(started_, ElementsAre(Lengths{1}, Lengths{kLong}, Lengths{200, 64}, Lengths{kLong}));
}

TEST_F(OvertakingTest, SequencesThatTakeLittleTimeShareABatchHoweverManyRowsTheyHave) {
  Start(clock_);
  control_->before_slice = [this](const Batch& batch) { clock_.Advance(batch.rows * 10ns); };
  LearnSpeed();
  Compute(1, {4000, 4000, 64});
  EXPECT_THAT(started_, ElementsAre(Lengths{1}, Lengths{4000, 4000, 64}));
}

TEST_F(OvertakingTest, ShortSequencesOvertakeNoPassOfShortOnes) {
  Start(clock_);
  LearnSpeed();
  Compute(500, {64});  // 50 ms
  EXPECT_THAT(started_, ElementsAre(Lengths{500}, Lengths{64}));
  EXPECT_THAT(control_->events(), ElementsAre("start", "take", "start", "take", "start", "take"));
}

TEST_F(OvertakingTest, WhatIsLongItselfIsOvertakenWhileItOvertakes) {
  Start(clock_);
  LearnSpeed();
  Compute(8 * kLong, {kLong, 64});
  EXPECT_THAT(started_, ElementsAre(Lengths{8 * kLong}, Lengths{kLong}, Lengths{64}));
  EXPECT_THAT(control_->events(),
              ElementsAre("start", "take", "start", "start", "start", "take", "take", "take"));
}

TEST_F(OvertakingTest, ALongSequenceKeepsFourFifthsOfTheThreadHoweverManyOvertakeIt) {
  Start(clock_);
  LearnSpeed();
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  Lengths lengths;
  for (int i = 0; i < 500; ++i) lengths.push_back(1 + static_cast<int64_t>(random() % 500));
  const auto compute = Compute(kLong, lengths)->Await(0)->timing.compute;
  EXPECT_LE(compute, 500ms);
  EXPECT_GE(compute, 450ms);  // they had their share
}

}  // namespace
}  // namespace linserve
