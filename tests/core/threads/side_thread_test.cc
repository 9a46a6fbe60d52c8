#include "core/threads/side_thread.h"

#include <gmock/gmock.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <vector>

#include "core/threads/guarded.h"
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

TEST(SideThread, GoesOnAfterAJobThatThrows) {
  static std::atomic<int> failures;
  ReportFailuresTo([](std::string_view, const absl::Status&) { ++failures; });
  bool next = false;
  {
    SideThread thread(2);
    thread.Add([] { throw std::runtime_error("a fault"); });
    thread.Add([&] { next = true; });
  }
  EXPECT_TRUE(next);
  EXPECT_EQ(failures, 1);
}

}  // namespace
}  // namespace linserve
