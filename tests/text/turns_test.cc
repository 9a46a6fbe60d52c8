#include "text/turns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>

namespace linserve {
namespace {

TEST(Turns, JobsTakeTurnsStepByStep) {
  std::string order;
  std::promise<void> begin;
  {
    Turns turns(1);
    turns.Run([&] {
      begin.get_future().wait();
      return true;
    });
    for (const char name : {'a', 'b'}) {
      turns.Run([&order, name, left = 3]() mutable {
        order += name;
        return --left == 0;
      });
    }
    begin.set_value();
  }
  EXPECT_EQ(order, "ababab");
}

TEST(Turns, FinishesWhatWasBegunBeforeItEnds) {
  std::atomic<int> done = 0;
  {
    Turns turns(3);
    for (int i = 0; i < 100; ++i) {
      turns.Run([&done, left = 5]() mutable {
        if (--left > 0) return false;
        ++done;
        return true;
      });
    }
  }
  EXPECT_EQ(done, 100);
}

TEST(Turns, GivesUpWhatAJobHoldsWhenItIsDone) {
  Turns turns(1);
  const auto held = std::make_shared<int>(0);
  std::promise<void> after;
  turns.Run([held] { return true; });
  turns.Run([&after] {
    after.set_value();
    return true;
  });
  after.get_future().wait();
  EXPECT_EQ(held.use_count(), 1);
}

}  // namespace
}  // namespace linserve
