#include "client/load/load_generator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <queue>
#include <thread>
#include <utility>
#include <vector>

#include "support/wait_until.h"

namespace linserve {
namespace {

using std::chrono::milliseconds;

// Answers requests one after another on a thread of its own, each after `service` time.
class SlowAnswerer {
 public:
  explicit SlowAnswerer(milliseconds service) : service_(service) {}

  SendRequest sender() {
    return [this](uint64_t n, EmbedCallback done) {
      std::lock_guard lock(mutex_);
      auto call = std::make_shared<Call>();
      queue_.push({n, call, std::move(done)});
      most_ = std::max(most_, queue_.size());
      wake_.notify_one();
      return call;
    };
  }

  size_t most_in_flight() const {
    std::lock_guard lock(mutex_);
    return most_;
  }

 private:
  struct Call : PendingCall {
    void Cancel() override { cancelled = true; }
    std::atomic<bool> cancelled = false;
  };
  struct Request {
    uint64_t n;
    std::shared_ptr<Call> call;
    EmbedCallback done;
  };

  void Answer(const std::stop_token& stop) {
    while (true) {
      std::unique_lock lock(mutex_);
      if (!wake_.wait(lock, stop, [this] { return !queue_.empty(); })) return;
      Request request = std::move(queue_.front());
      lock.unlock();
      if (!request.call->cancelled) std::this_thread::sleep_for(service_);
      lock.lock();
      queue_.pop();
      lock.unlock();
      if (request.call->cancelled) {
        request.done(absl::CancelledError("cancelled"), {});
      } else if (request.n % 10 == 9) {
        request.done(absl::ResourceExhaustedError("full"), {});
      } else {
        SequenceResult result;
        result.tokens = 5;
        result.timing.compute = service_;
        request.done(absl::OkStatus(), {result, result});
      }
    }
  }

  const milliseconds service_;
  mutable std::mutex mutex_;
  std::condition_variable_any wake_;
  std::queue<Request> queue_;
  size_t most_ = 0;
  std::jthread thread_{[this](const std::stop_token& stop) { Answer(stop); }};
};

TEST(LoadGenerator, AClosedLoopKeepsItsRequestsInFlight) {
  SlowAnswerer answerer{milliseconds(1)};
  LoadGenerator generator({.concurrency = 4, .requests = 100, .warmup = milliseconds(20)},
                          answerer.sender());
  const std::atomic<bool> stop = false;
  const LoadReport report = generator.Run(stop);
  EXPECT_EQ(report.requests, 100U);
  EXPECT_EQ(answerer.most_in_flight(), 4U);
  EXPECT_EQ(report.ok.requests + report.request_errors.at("RESOURCE_EXHAUSTED"), 100U);
  EXPECT_EQ(report.ok.sequences, 2 * report.ok.requests);
  EXPECT_EQ(report.ok.tokens, 10 * report.ok.requests);
  EXPECT_EQ(report.first_error, "full");
  EXPECT_EQ(report.latency.count(), report.ok.requests);
  // Four requests share one answerer that takes at least a millisecond for each.
  EXPECT_GT(report.latency.Quantile(0.5), 3'500'000U);
  EXPECT_GT(report.seconds, 0.09);
}

TEST(LoadGenerator, AnOpenLoopCountsTheWaitOfALateRequest) {
  SlowAnswerer answerer{milliseconds(4)};
  LoadGenerator generator({.rate = 500, .duration = milliseconds(200), .warmup = milliseconds(0)},
                          answerer.sender());
  const std::atomic<bool> stop = false;
  const LoadReport report = generator.Run(stop);
  EXPECT_TRUE(report.open_loop);
  EXPECT_NEAR(static_cast<double>(report.requests), 100, 40);
  // Twice as many come as can be answered, so that the last ones wait half of the whole time.
  EXPECT_GT(report.latency.max(), 80'000'000U);
  EXPECT_GE(report.latency.max(), report.service.max());
}

TEST(LoadGenerator, ATraceIsSentAtItsTimesAndMeasuredWhole) {
  SlowAnswerer answerer{milliseconds(1)};
  LoadGenerator generator({.times = {milliseconds(0), milliseconds(0), milliseconds(150)},
                           .warmup = std::chrono::hours(1)},
                          answerer.sender());
  const std::atomic<bool> stop = false;
  const LoadReport report = generator.Run(stop);
  EXPECT_TRUE(report.open_loop);
  EXPECT_EQ(report.requests, 3U);
  EXPECT_EQ(report.latency.count(), 3U);
  EXPECT_EQ(report.within.requests, 3U);
  EXPECT_GE(report.seconds, 0.15);
  uint64_t answered = 0;
  for (const LoadTimeline::Interval& interval : report.timeline.intervals()) {
    answered += interval.answered;
    EXPECT_EQ(interval.sequences, 2 * interval.answered);
  }
  EXPECT_EQ(answered, 3U);
}

TEST(LoadGenerator, AnOpenLoopDoesNotPileUpRequestsWithoutEnd) {
  SlowAnswerer answerer{milliseconds(20)};
  LoadGenerator generator(
      {.rate = 1000, .duration = milliseconds(100), .warmup = milliseconds(0), .max_in_flight = 5},
      answerer.sender());
  const std::atomic<bool> stop = false;
  const LoadReport report = generator.Run(stop);
  EXPECT_LE(answerer.most_in_flight(), 5U);
  EXPECT_GT(report.unsent, 50U);
  EXPECT_GE(report.failed(), report.unsent);
  EXPECT_THAT(report.Errors(), testing::HasSubstr("requests not sent, as the client had too many"));
}

// Answers at once, so that whoever asks again at once does nothing else.
SendRequest RefuseAll(const absl::Status& status, std::vector<std::jthread>& threads) {
  return [&threads, status](uint64_t, const EmbedCallback& done) {
    threads.emplace_back([done, status] { done(status, {}); });
    return nullptr;
  };
}

TEST(LoadGenerator, AClosedLoopPausesWhereTheServerIsAwayOrLetsNobodyIn) {
  for (const absl::Status& status :
       {absl::UnavailableError("nobody listens"), absl::UnauthenticatedError("who are you?")}) {
    std::vector<std::jthread> threads;
    LoadGenerator generator(
        {.concurrency = 2, .duration = milliseconds(900), .warmup = milliseconds(100)},
        RefuseAll(status, threads));
    const std::atomic<bool> stop = false;
    const auto begin = std::chrono::steady_clock::now();
    const LoadReport report = generator.Run(stop);
    // Pauses of 50, 100, 200 and 400 ms, and the last one ends with the load.
    EXPECT_GE(threads.size(), 4U) << status;
    EXPECT_LE(threads.size(), 10U) << status;
    EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(1500)) << status;
    EXPECT_DOUBLE_EQ(report.away_seconds, absl::IsUnavailable(status) ? 0.9 : 0) << status;
  }
}

TEST(LoadGenerator, AServerThatComesBackIsAskedAgainWithoutPauses) {
  SlowAnswerer answerer{milliseconds(1)};
  std::vector<std::jthread> threads;
  const SendRequest away = RefuseAll(absl::UnavailableError("nobody listens"), threads);
  LoadGenerator generator({.concurrency = 1, .requests = 50, .warmup = milliseconds(0)},
                          [&, there = answerer.sender()](uint64_t n, EmbedCallback done) {
                            return n < 3 ? away(n, std::move(done)) : there(n, std::move(done));
                          });
  const std::atomic<bool> stop = false;
  const LoadReport report = generator.Run(stop);
  EXPECT_EQ(report.request_errors.at("UNAVAILABLE"), 3U);
  EXPECT_GE(report.away_seconds, 0.35);  // 50, 100 and 200 ms
  EXPECT_GE(report.seconds, report.away_seconds);
  EXPECT_LT(report.seconds, 20);
}

// Holds requests that the test answers.
class HeldRequests {
 public:
  SendRequest sender() {
    return [this](uint64_t, EmbedCallback done) {
      std::lock_guard lock(mutex_);
      held_.push(std::move(done));
      sent_.notify_one();
      return nullptr;
    };
  }

  // Answers the next request; returns false if there is none within a minute.
  bool AnswerNext() {
    std::unique_lock lock(mutex_);
    if (!sent_.wait_for(lock, std::chrono::minutes(1), [this] { return !held_.empty(); })) {
      return false;
    }
    const EmbedCallback done = std::move(held_.front());
    held_.pop();
    lock.unlock();
    SequenceResult result;
    result.tokens = 5;
    done(absl::OkStatus(), {result});
    return true;
  }

 private:
  std::mutex mutex_;
  std::condition_variable sent_;
  std::queue<EmbedCallback> held_;
};

// If they were not, the work on requests that wait longer than the measurement takes would hardly
// count.
TEST(LoadGenerator, RatesAreOfTheAnswersThatCameWithinTheMeasurement) {
  HeldRequests requests;
  LoadGenerator generator(
      {.concurrency = 2, .duration = milliseconds(1000), .warmup = milliseconds(1000)},
      requests.sender());
  const std::jthread answerer([&] {
    requests.AnswerNext();  // this is while it warms up, which sends a third one
    EXPECT_TRUE(WaitUntil([&] { return !generator.progress().warming_up; }));
    for (int i = 0; i < 3; ++i) requests.AnswerNext();  // only the last one was sent since then
    EXPECT_TRUE(WaitUntil([&] { return generator.progress().elapsed > milliseconds(2000); }));
    for (int i = 0; i < 2; ++i) requests.AnswerNext();
  });
  const std::atomic<bool> stop = false;
  const LoadReport report = generator.Run(stop);
  EXPECT_EQ(report.within.requests, 3U);
  EXPECT_EQ(report.within.tokens, 15U);
  EXPECT_EQ(report.ok.requests, 3U);
  EXPECT_EQ(report.latency.count(), 3U);
  EXPECT_DOUBLE_EQ(report.seconds, 1);
}

TEST(LoadGenerator, DoesNotMeasureTheWarmUp) {
  SlowAnswerer answerer{milliseconds(1)};
  LoadGenerator generator(
      {.concurrency = 1, .duration = milliseconds(50), .warmup = milliseconds(200)},
      answerer.sender());
  const std::atomic<bool> stop = false;
  const LoadReport report = generator.Run(stop);
  EXPECT_LE(report.requests, 50U);
  EXPECT_GT(generator.progress().answered, report.ok.requests);
}

TEST(LoadGenerator, StopsWhenToldAndReportsWhatItHas) {
  SlowAnswerer answerer{milliseconds(2)};
  LoadGenerator generator(
      {.concurrency = 3, .duration = std::chrono::hours(1), .warmup = milliseconds(0)},
      answerer.sender());
  std::atomic<bool> stop = false;
  const std::jthread stopper([&] {
    EXPECT_TRUE(WaitUntil([&] { return generator.progress().answered > 0; }));
    stop = true;
  });
  const LoadReport report = generator.Run(stop);
  EXPECT_TRUE(report.interrupted);
  EXPECT_GT(report.ok.requests, 0U);
  EXPECT_EQ(report.request_errors.count("CANCELLED"), 0U);
  EXPECT_LT(report.seconds, 60);
}

// This test answers at once, so that nothing is in flight when the load is stopped.
TEST(LoadGenerator, StoppedInAnOpenLoopMeasuresUntilThen) {
  SlowAnswerer answerer{milliseconds(0)};
  LoadGenerator generator(
      {.rate = 200, .duration = std::chrono::hours(1), .warmup = milliseconds(0)},
      answerer.sender());
  std::atomic<bool> stop = false;
  const std::jthread stopper([&] {
    EXPECT_TRUE(WaitUntil([&] { return generator.progress().answered >= 5; }));
    stop = true;
  });
  const LoadReport report = generator.Run(stop);
  EXPECT_TRUE(report.interrupted);
  EXPECT_GE(report.within.requests, 5U);
  EXPECT_GT(report.seconds, 0);
  EXPECT_LT(report.seconds, 60);
}

TEST(LoadGenerator, StoppedAfterTheMeasurementKeepsItsTime) {
  HeldRequests requests;
  LoadGenerator generator(
      {.concurrency = 1, .duration = milliseconds(50), .warmup = milliseconds(0)},
      requests.sender());
  std::atomic<bool> stop = false;
  const std::jthread stopper([&] {
    EXPECT_TRUE(WaitUntil([&] { return generator.progress().elapsed > milliseconds(200); }));
    stop = true;
    EXPECT_TRUE(WaitUntil([&] { return generator.progress().elapsed > milliseconds(400); }));
    requests.AnswerNext();
  });
  EXPECT_DOUBLE_EQ(generator.Run(stop).seconds, 0.05);
}

}  // namespace
}  // namespace linserve
