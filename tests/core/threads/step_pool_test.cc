#include "core/threads/step_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>

namespace linserve {
namespace {

using namespace std::chrono_literals;

// Uses the processor, as a step does.
void Work(std::chrono::nanoseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) continue;
}

StepJob JobOf(std::string caller, std::function<int64_t()> step) {
  return {.caller = std::move(caller), .work = 1, .step = std::move(step)};
}

// Holds the pool's only thread until it is destroyed or told to let go.
class Held {
 public:
  explicit Held(StepPool& pool) {
    std::promise<void> begun;
    pool.Run(JobOf("held", [&begun, let_go = let_go_.get_future().share()] {
      begun.set_value();
      let_go.wait();
      return 0;
    }));
    begun.get_future().wait();
  }
  void LetGo() { let_go_.set_value(); }

 private:
  std::promise<void> let_go_;
};

// Returns what was run in which order, a letter a step, for jobs that wait together.
class Order {
 public:
  std::function<int64_t()> Step(char name, int64_t steps, std::chrono::nanoseconds time = 1ms) {
    return [this, name, steps, time]() mutable {
      Work(time);
      const std::scoped_lock lock(mutex_);
      steps_ += name;
      return --steps;
    };
  }
  const std::string& steps() const { return steps_; }  // REQUIRES: the pool is gone

 private:
  std::mutex mutex_;
  std::string steps_;
};

TEST(StepPool, JobsOfACallerTakeTurnsStepByStep) {
  Order order;
  {
    StepPool pool(1);
    Held held(pool);
    for (const char name : {'a', 'b'}) pool.Run(JobOf("caller", order.Step(name, 3)));
    held.LetGo();
  }
  // From then on it is the turn of whoever has had less time, which the machine decides.
  EXPECT_EQ(order.steps().substr(0, 2), "ab");
  EXPECT_EQ(order.steps().size(), 6U);
}

TEST(StepPool, ACallerWithManyJobsHasNoMoreTurnsThanOneWithOne) {
  Order order;
  {
    StepPool pool(1);
    Held held(pool);
    for (int i = 0; i < 400; ++i) pool.Run(JobOf("many", order.Step('m', 1)));
    pool.Run(JobOf("one", order.Step('o', 20)));
    held.LetGo();
  }
  // The last step of the one comes when each has had about twenty, by their times, which a busy
  // machine stretches; it would come last if jobs had turns.
  EXPECT_LT(order.steps().find_last_of('o'), 200U);
}

TEST(StepPool, WhoeverComesWithLittleWaitsForAboutOneStepOfTheOthers) {
  Order order;
  {
    StepPool pool(1);
    std::promise<void> in_the_midst;
    for (int i = 0; i < 40; ++i) {
      const std::string caller = i < 20 ? "caller" + std::to_string(i) : "same";
      pool.Run(JobOf(caller, order.Step('l', 10)));
    }
    pool.Run(JobOf("late", [&, steps = 3]() mutable -> int64_t {
      Work(1ms);
      if (steps == 1) {
        pool.Run(JobOf("new", order.Step('n', 1)));
        pool.Run(JobOf("same", order.Step('s', 1)));
      }
      return --steps;
    }));
  }
  // Both came when all others had had about two steps, and had eight to go.
  EXPECT_LT(order.steps().find('n'), 300U);
  EXPECT_LT(order.steps().find('s'), 300U);
  EXPECT_EQ(order.steps().size(), 402U);
}

TEST(StepPool, WhoeverComesAgainAndAgainDoesNotKeepTheOthersWaiting) {
  std::atomic<bool> done = false;
  std::atomic<int> returns = 0;
  StepPool pool(1);
  std::function<int64_t()> again = [&]() -> int64_t {
    Work(1ms);
    if (!done && ++returns < 5000) pool.Run(JobOf("eager", again));
    return 0;
  };
  pool.Run(JobOf("eager", again));
  pool.Run(JobOf("eager", again));
  std::promise<void> ended;
  pool.Run(JobOf("eager", [&, steps = 200]() mutable -> int64_t {
    Work(1ms);
    if (--steps > 0) return steps;
    done = true;
    ended.set_value();
    return 0;
  }));
  ended.get_future().wait();
  EXPECT_LT(returns, 5000);
}

TEST(StepPool, AJobPastItsDeadlineIsNext) {
  Order order;
  {
    StepPool pool(1);
    Held held(pool);
    for (int i = 0; i < 10; ++i) pool.Run(JobOf("same", order.Step('x', 1)));
    StepJob late = JobOf("same", order.Step('d', 1));
    late.deadline = std::chrono::steady_clock::now();
    pool.Run(std::move(late));
    StepJob early = JobOf("same", order.Step('e', 1));
    early.deadline = std::chrono::steady_clock::now() + 1h;
    pool.Run(std::move(early));
    held.LetGo();
  }
  EXPECT_EQ(order.steps(), "dxxxxxxxxxxe");
}

TEST(StepPool, FinishesWhatWasBegunBeforeItEnds) {
  std::atomic<int> done = 0;
  {
    StepPool pool(3);
    for (int i = 0; i < 100; ++i) {
      pool.Run(JobOf(std::to_string(i % 7), [&done, left = 5]() mutable -> int64_t {
        if (--left == 0) ++done;
        return left;
      }));
    }
  }
  EXPECT_EQ(done, 100);
}

TEST(StepPool, GivesUpWhatAJobHoldsWhenItIsDone) {
  StepPool pool(1);
  const auto held = std::make_shared<int>(0);
  std::promise<void> after;
  pool.Run(JobOf("caller", [held] { return 0; }));
  pool.Run(JobOf("caller", [&after] {
    after.set_value();
    return 0;
  }));
  after.get_future().wait();
  EXPECT_EQ(held.use_count(), 1);
}

TEST(StepPool, GoesOnAfterAStepThatThrows) {
  const auto held = std::make_shared<int>(0);
  std::promise<void> after;
  StepPool pool(1);
  pool.Run(JobOf("caller", [held]() -> int64_t { throw std::bad_alloc(); }));
  pool.Run(JobOf("caller", [held]() -> int64_t { throw std::runtime_error("odd"); }));
  pool.Run(JobOf("caller", [held]() -> int64_t { throw 5; }));
  pool.Run(JobOf("caller", [&after] {
    after.set_value();
    return 0;
  }));
  after.get_future().wait();
  EXPECT_EQ(held.use_count(), 1);
}

TEST(StepPool, EstimatesByTheStepsUpToNow) {
  StepPool pool(1);
  EXPECT_EQ(pool.TimeFor(1000), 0ns);
  for (int i = 0; i < 3; ++i) {
    std::promise<void> done;
    StepJob job = JobOf("caller", [&done] {
      Work(10ms);
      done.set_value();
      return 0;
    });
    job.work = 100;
    pool.Run(std::move(job));
    done.get_future().wait();
  }
  while (pool.TimeFor(100) == 0ns) std::this_thread::yield();
  EXPECT_GE(pool.TimeFor(1000), 90ms);
  EXPECT_LT(pool.TimeFor(1000), 10s);

  Held held(pool);
  for (const char* caller : {"own", "own", "other"}) {
    StepJob job = JobOf(caller, [] { return 0; });
    job.work = 10'000;
    pool.Run(std::move(job));
  }
  // No more of the long jobs is counted than the caller's own work.
  EXPECT_EQ(pool.TimeUntilDone("own", 100, 1h), 0ns);
  EXPECT_GE(pool.TimeUntilDone("own", 100, 1ms), pool.TimeFor(600));
  EXPECT_LE(pool.TimeUntilDone("own", 100, 1ms), pool.TimeFor(610));
  EXPECT_LE(pool.TimeUntilDone("new", 100, 1ms), pool.TimeFor(310));
  held.LetGo();
}

TEST(StepPool, LearnsNoSpeedFromStepsWithoutProgress) {
  StepPool pool(1);
  std::promise<void> done;
  int steps = 0;
  pool.Run({.caller = "own", .work = 100, .step = [&] {
              if (steps++ < 10) {
                Work(20ms);
                return int64_t{100};
              }
              done.set_value();
              return int64_t{0};
            }});
  done.get_future().wait();
  while (pool.TimeFor(100) == 0ns) std::this_thread::yield();
  EXPECT_LT(pool.TimeFor(100), 80ms);
}

TEST(StepPool, ManyCallersComeAndGo) {
  std::atomic<int> done = 0;
  {
    StepPool pool(2);
    for (int i = 0; i < 5000; ++i) {
      StepJob job = JobOf("caller" + std::to_string(i), [&done, left = 2]() mutable -> int64_t {
        if (--left == 0) ++done;
        return left;
      });
      job.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(i % 3);
      pool.Run(std::move(job));
    }
  }
  EXPECT_EQ(done, 5000);
}

}  // namespace
}  // namespace linserve
