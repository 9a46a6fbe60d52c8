#include "repository/load_queue.h"

#include <atomic>
#include <future>
#include <new>

#include "support/test_files.h"
#include "support/wait_until.h"

namespace linserve {
namespace {

using std::chrono::milliseconds;

absl::Status Nothing() { return absl::OkStatus(); }

// Takes the end of one piece of work.
class Ending {
 public:
  LoadQueue::Done done() {
    return [promise = promise_](const absl::Status& status) { promise->set_value(status); };
  }
  absl::Status Await() { return promise_->get_future().get(); }

 private:
  std::shared_ptr<std::promise<absl::Status>> promise_ =
      std::make_shared<std::promise<absl::Status>>();
};

// Makes work that goes on until it is let go.
class Gate {
 public:
  LoadQueue::Work work() {
    return [this] {
      begun_ = true;
      EXPECT_TRUE(WaitUntil([this] { return open_.load(); }));
      return absl::OkStatus();
    };
  }
  bool AwaitBegun() {
    return WaitUntil([this] { return begun_.load(); });
  }
  void Open() { open_ = true; }

 private:
  std::atomic<bool> begun_ = false;
  std::atomic<bool> open_ = false;
};

TEST(LoadQueue, DoesOneAfterTheOther) {
  std::vector<int> order;
  Ending last;
  LoadQueue queue(milliseconds(0), Nothing);
  for (const int i : {1, 2, 3}) {
    queue.Add([&order, i] { return order.push_back(i), absl::OkStatus(); },
              i == 3 ? last.done() : [](const absl::Status&) {});
  }
  EXPECT_TRUE(last.Await().ok());
  EXPECT_THAT(order, testing::ElementsAre(1, 2, 3));
}

TEST(LoadQueue, LooksAgainAndAgainOnceThereWasSomethingToDo) {
  std::atomic<int> looks = 0;
  LoadQueue queue(milliseconds(1), [&] { return ++looks, absl::OkStatus(); });
  queue.Add(Nothing, [](const absl::Status&) {});
  EXPECT_TRUE(WaitUntil([&] { return looks > 2; }));
}

TEST(LoadQueue, TurnsWhatIsThrownIntoAStatus) {
  LoadQueue queue(milliseconds(0), Nothing);
  Ending first;
  queue.Add([]() -> absl::Status { throw std::bad_alloc(); }, first.done());
  EXPECT_TRUE(absl::IsResourceExhausted(first.Await()));
  Ending second;
  queue.Add(Nothing, second.done());
  EXPECT_TRUE(second.Await().ok());
}

TEST(LoadQueue, SurvivesWhoeverCannotBeTold) {
  LoadQueue queue(milliseconds(0), Nothing);
  queue.Add(Nothing, [](const absl::Status&) { throw std::bad_alloc(); });
  Ending ending;
  queue.Add(Nothing, ending.done());
  EXPECT_TRUE(ending.Await().ok());
}

TEST(LoadQueue, ThatIsDrainedRefusesWhatWaitsAtOnce) {
  Gate gate;
  std::vector<Ending> waiting(100);
  LoadQueue queue(milliseconds(0), Nothing);
  Ending running;
  queue.Add(gate.work(), running.done());
  ASSERT_TRUE(gate.AwaitBegun());
  for (Ending& ending : waiting) queue.Add(Nothing, ending.done());
  queue.Close();
  EXPECT_TRUE(queue.closed());
  for (Ending& ending : waiting) {
    EXPECT_THAT(ending.Await(), IsStatus(kUnavailableCode, "draining"));
  }
  Ending late;
  queue.Add(Nothing, late.done());
  EXPECT_TRUE(absl::IsUnavailable(late.Await()));
  gate.Open();
  EXPECT_TRUE(running.Await().ok());
  EXPECT_TRUE(queue.Drain(TimePoint::max()));
}

TEST(LoadQueue, ThatIsDrainedAbandonsWhatIsUnderWayAtTheDeadline) {
  Gate gate;
  Ending running;
  LoadQueue queue(milliseconds(0), Nothing);
  queue.Add(gate.work(), running.done());
  ASSERT_TRUE(gate.AwaitBegun());
  EXPECT_FALSE(queue.Drain(SteadyClock().Now() + milliseconds(1)));
  EXPECT_THAT(running.Await(), IsStatus(kUnavailableCode, "draining"));
  gate.Open();  // that it ends in the end tells nobody a second time
}

}  // namespace
}  // namespace linserve
