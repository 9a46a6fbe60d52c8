#include "telemetry/trace/span_queue.h"

#include <gmock/gmock.h>

#include <deque>
#include <string>
#include <vector>

#include "support/test_files.h"
#include "support/wait_until.h"
#include "telemetry/scraped.h"

namespace linserve {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::ElementsAre;
using testing::MatchesRegex;

// Takes spans, as a collector does, with the answers that a test gives it.
class Collector {
 public:
  std::unique_ptr<SpanSender> Sender() { return std::make_unique<Connection>(*this); }

  void Answer(absl::Status status) {
    const MutexLock lock(mutex_);
    answers_.push_back(std::move(status));
  }
  // Answers nothing until the caller leaves.
  void Hang() {
    const MutexLock lock(mutex_);
    hanging_ = true;
  }

  // Returns the names of the spans that have come, try by try.
  std::vector<std::vector<std::string>> tries() const {
    const MutexLock lock(mutex_);
    return tries_;
  }
  size_t taken() const {
    const MutexLock lock(mutex_);
    return taken_;
  }

 private:
  class Connection : public SpanSender {
   public:
    explicit Connection(Collector& collector) : collector_(collector) {}
    absl::Status Send(const std::vector<EndedSpan>& spans, TraceTime /*deadline*/) override {
      return collector_.Take(spans);
    }
    void Cancel() override {
      const MutexLock lock(collector_.mutex_);
      collector_.hanging_ = false;
      collector_.left_.NotifyAll();
    }

   private:
    Collector& collector_;
  };

  absl::Status Take(const std::vector<EndedSpan>& spans) {
    MutexLock lock(mutex_);
    std::vector<std::string>& names = tries_.emplace_back();
    for (const EndedSpan& span : spans) names.push_back(span.name);
    const bool hung = hanging_;
    while (hanging_) left_.Wait(lock);
    absl::Status status = hung ? absl::CancelledError("the caller left") : absl::OkStatus();
    if (!answers_.empty()) {
      status = answers_.front();
      answers_.pop_front();
    }
    if (status.ok()) taken_ += spans.size();
    return status;
  }

  mutable Mutex mutex_;
  CondVar left_;
  std::deque<absl::Status> answers_ ABSL_GUARDED_BY(mutex_);  // then OK
  std::vector<std::vector<std::string>> tries_ ABSL_GUARDED_BY(mutex_);
  bool hanging_ ABSL_GUARDED_BY(mutex_) = false;
  size_t taken_ ABSL_GUARDED_BY(mutex_) = 0;
};

class SpanQueueTest : public testing::Test {
 protected:
  void Open(const SpanPolicy& policy) { queue_.Open(collector_.Sender(), metrics_, policy); }
  void Add(int count) {
    for (int i = 0; i < count; ++i) queue_.Add({.name = std::to_string(next_++)});
  }
  // Closes the queue, which may take a minute.
  void Close() { queue_.Close(steady_clock::now() + std::chrono::minutes(1)); }
  double Count(const std::string& result) const {
    return Scraped(metrics_.Scrape())["linserve_spans_total{result=\"" + result + "\"}"];
  }
  bool WaitForTries(size_t count) {
    return WaitUntil([&] { return collector_.tries().size() >= count; });
  }

  static constexpr std::chrono::minutes kNever{10};

  Metrics metrics_{{}};
  Collector collector_;
  SpanQueue queue_;
  int next_ = 0;
};

TEST_F(SpanQueueTest, SendsAFullBatchAtOnce) {
  Open({.batch = 3, .pause = kNever});
  Add(3);
  EXPECT_TRUE(WaitForTries(1));
  EXPECT_THAT(collector_.tries(), ElementsAre(ElementsAre("0", "1", "2")));
}

TEST_F(SpanQueueTest, SendsFewAfterAPause) {
  Open({.batch = 100, .pause = milliseconds(1)});
  Add(2);
  EXPECT_TRUE(WaitUntil([&] { return Count("sent") == 2; }));
}

TEST_F(SpanQueueTest, SendsWhatWaitsWhenItIsClosed) {
  Open({.batch = 2, .pause = kNever});
  Add(5);
  Close();
  EXPECT_THAT(collector_.tries(),
              ElementsAre(ElementsAre("0", "1"), ElementsAre("2", "3"), ElementsAre("4")));
  EXPECT_EQ(Count("sent"), 5);
  EXPECT_FALSE(queue_.open());
  Add(1);
  EXPECT_EQ(collector_.taken(), 5U);
}

TEST_F(SpanQueueTest, DropsAndCountsWhatHasNoRoomAndBlocksNobody) {
  collector_.Hang();
  Open({.most = 4, .batch = 2, .pause = kNever});
  Add(2);
  ASSERT_TRUE(WaitForTries(1));
  Add(7);  // while the first two are sent
  EXPECT_EQ(Count("dropped"), 3);
  queue_.Close(steady_clock::now());
  EXPECT_EQ(Count("dropped") + Count("failed"), 9);
}

TEST_F(SpanQueueTest, TriesAgainWhatMayBeTakenLater) {
  collector_.Answer(absl::UnavailableError("it starts"));
  collector_.Answer(absl::DeadlineExceededError("it is slow"));
  Open({.batch = 1, .first_retry = milliseconds(1)});
  Add(1);
  EXPECT_TRUE(WaitUntil([&] { return Count("sent") == 1; }));
  EXPECT_THAT(collector_.tries(),
              ElementsAre(ElementsAre("0"), ElementsAre("0"), ElementsAre("0")));
}

TEST_F(SpanQueueTest, GivesUpWhatNoOtherTryWouldMend) {
  collector_.Answer(absl::InvalidArgumentError("what is this?"));
  Open({.batch = 1, .first_retry = kNever});
  Add(1);
  EXPECT_TRUE(WaitUntil([&] { return Count("failed") == 1; }));
  Add(1);
  EXPECT_TRUE(WaitUntil([&] { return Count("sent") == 1; }));
}

TEST_F(SpanQueueTest, GivesABatchUpAfterItsPatience) {
  for (int i = 0; i < 100; ++i) collector_.Answer(absl::UnavailableError("it is away"));
  Open({.batch = 1, .first_retry = milliseconds(2), .patience = milliseconds(5)});
  Add(1);
  EXPECT_TRUE(WaitUntil([&] { return Count("failed") == 1; }));
}

TEST_F(SpanQueueTest, TriesOnceMoreInsteadOfWaitingWhenItIsClosed) {
  collector_.Answer(absl::UnavailableError("it starts"));
  Open({.batch = 1, .first_retry = kNever, .patience = 2 * kNever});
  Add(1);
  ASSERT_TRUE(WaitForTries(1));
  Close();
  EXPECT_EQ(Count("sent"), 1);
}

TEST_F(SpanQueueTest, EndsInTimeWhereTheCollectorAnswersNothing) {
  collector_.Hang();
  Open({.batch = 1});
  Add(3);
  ASSERT_TRUE(WaitForTries(1));
  const auto begun = steady_clock::now();
  queue_.Close(begun + milliseconds(10));
  EXPECT_LT(steady_clock::now() - begun, std::chrono::seconds(10));
  EXPECT_EQ(Count("sent"), 0);
  EXPECT_EQ(Count("failed") + Count("dropped"), 3);
}

TEST_F(SpanQueueTest, SaysOnceThatTheCollectorIsAwayAndOnceThatItIsBack) {
  ConfigureLog({});
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  for (int i = 0; i < 3; ++i) collector_.Answer(absl::UnavailableError("away"));
  Open({.batch = 1, .first_retry = milliseconds(1)});
  Add(1);
  EXPECT_TRUE(WaitUntil([&] { return Count("sent") == 1; }));
  Close();
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              MatchesRegex("[^\n]*spans are not taken error=\"UNAVAILABLE: away\"\n"));
  EXPECT_THAT(testing::internal::GetCapturedStdout(),
              MatchesRegex("[^\n]*spans are taken again\n"));
}

}  // namespace
}  // namespace linserve
