#include "core/threads/side_thread.h"

#include <gmock/gmock.h>

#include <atomic>
#include <functional>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "support/wait_until.h"

namespace linserve {
namespace {

using testing::ElementsAre;

TEST(SideThread, RunsJobsInTheirOrderAndAllBeforeItEnds) {
  std::vector<int> done;
  {
    SideThread thread(2);
    for (int i = 0; i < 5; ++i) thread.Add([&, i] { done.push_back(i); });
  }
  EXPECT_THAT(done, ElementsAre(0, 1, 2, 3, 4));
}

TEST(SideThread, LetsJobsBeAddedWhileOneRunsUntilSoManyWait) {
  std::atomic<bool> go = false;
  std::atomic<int> added = 0;
  SideThread thread(2);
  std::thread adder([&] {
    for (int i = 0; i < 4; ++i, ++added) {
      thread.Add([&] { EXPECT_TRUE(WaitUntil([&] { return go.load(); })); });
    }
  });
  EXPECT_TRUE(WaitUntil([&] { return added == 3; }));  // one that runs, and two
  go = true;
  adder.join();
  EXPECT_EQ(added, 4);
}

TEST(SideThread, WaitsForWhatItWasGiven) {
  SideThread thread(2);
  auto held = std::make_shared<int>(7);
  const std::weak_ptr<int> left = held;
  int seen = 0;
  thread.Add([&seen, held = std::move(held)] { seen = *held; });
  thread.Wait();
  EXPECT_EQ(seen, 7);
  EXPECT_TRUE(left.expired());
}

// Is held by a job, and calls a function when it goes.
class LastWords {
 public:
  explicit LastWords(std::function<void()> words) : words_(std::move(words)) {}
  ~LastWords() { words_(); }

 private:
  const std::function<void()> words_;
};

TEST(SideThread, GoesOnAfterAJobThatThrows) {
  bool next = false;
  {
    SideThread thread(2);
    auto held = std::make_shared<LastWords>([&] { thread.Add([&] { next = true; }); });
    thread.Add([held = std::move(held)] { throw std::runtime_error("a fault that is reported"); });
    thread.Wait();
  }
  EXPECT_TRUE(next);
}

}  // namespace
}  // namespace linserve
