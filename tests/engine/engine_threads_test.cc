#include <random>
#include <thread>

#include "support/fakes/engine_fixture.h"

namespace linserve {
namespace {

using testing::SizeIs;

using EngineThreads = EngineTest;

// Holds one request of the test in this file, and what may become of it.
struct Sent {
  std::shared_ptr<RecordingSink> sink = std::make_shared<RecordingSink>();
  std::vector<int64_t> lengths;
  bool left = false;
};

// Expects that the sequence is faulty, failed with its batch, was abandoned, or has the right rows.
void ExpectRightAnswer(const Sent& sent, size_t index) {
  const std::vector<RecordingSink::Result> results = sent.sink->Of(index);
  ASSERT_THAT(results, SizeIs(1));
  const int64_t length = sent.lengths[index];
  if (length > kFakeLongest) {
    EXPECT_THAT(results[0], IsInvalid("x"));
  } else if (results[0].ok()) {
    const Tensor& y = results[0]->outputs.at("y");
    EXPECT_EQ(std::vector<float>(y.data<float>(), y.data<float>() + y.elements()),
              FakeResult(length));
  } else {
    const absl::Status& status = results[0].status();
    EXPECT_TRUE(absl::IsInternal(status) || absl::IsResourceExhausted(status) ||
                (sent.left && absl::IsCancelled(status)))
        << status;
  }
}

TEST_F(EngineThreads, AreEachAnsweredExactlyOnceWhateverFailsAndWhoeverLeaves) {
  constexpr unsigned kThreads = 8;
  constexpr size_t kRequests = 100;
  control_->steps = 3;
  control_->fault = [](const Batch& batch) {
    const int64_t lot = batch.rows % 16;
    if (lot == 1) return Fault::kStepFails;
    if (lot == 2) return Fault::kBadAlloc;
    return lot == 3 ? Fault::kStartFails : Fault::kNone;
  };
  options_.replicas = 2;
  options_.policy = {.max_tokens = 200, .max_sequences = 8};
  options_.limits.max_sequences = 100;
  Start();
  std::vector<Sent> all(kThreads * kRequests);
  std::vector<std::jthread> threads;
  for (unsigned t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (size_t r = t * kRequests; r < (t + 1) * kRequests; ++r) {
        Sent& sent = all[r];
        for (size_t more = 1 + random() % 6; more > 0; --more) {
          sent.lengths.push_back(1 + static_cast<int64_t>(random() % (kFakeLongest + 2)));
        }
        sent.left = random() % 6 == 0;
        Request request = Of(sent.sink, sent.lengths);
        while (!engine_->Submit(request).ok()) std::this_thread::yield();
        if (sent.left) sent.sink->Abandon();
      }
    });
  }
  threads.clear();
  EXPECT_EQ(engine_->Drain(TimePoint::max()), 0u);

  size_t succeeded = 0;
  for (const Sent& sent : all) {
    EXPECT_EQ(sent.sink->delivered(), sent.lengths.size());
    for (size_t i = 0; i < sent.lengths.size(); ++i) {
      ExpectRightAnswer(sent, i);
      succeeded += sent.sink->Of(i)[0].ok() ? 1 : 0;
    }
  }
  EXPECT_GT(succeeded, all.size());  // thus most of them succeeded
  EXPECT_EQ(Metric("queue_requests"), 0);
  EXPECT_EQ(Metric("queue_sequences"), 0);
  EXPECT_EQ(Metric("queue_tokens"), 0);
  EXPECT_EQ(Metric("queue_bytes"), 0);
}

TEST_F(EngineThreads, ComputeOnAllReplicasAtOnce) {
  options_.replicas = 3;
  options_.policy.max_sequences = 1;
  Start();
  control_->Hold();
  EXPECT_TRUE(Submit(sink_, {1, 2, 3}).ok());
  control_->AwaitHeld(3);
  control_->LetGo();
  sink_->AwaitDeliveries(3);
}

TEST_F(EngineThreads, ThatSubmitWhileItDrainsAreAnsweredOrRefused) {
  Start();
  std::vector<std::shared_ptr<RecordingSink>> accepted[4];
  {
    std::vector<std::jthread> threads;
    for (auto& mine : accepted) {
      threads.emplace_back([&] {
        while (true) {
          const auto sink = std::make_shared<RecordingSink>();
          const absl::Status status = Submit(sink, {1, 2});
          if (absl::IsResourceExhausted(status)) continue;
          if (!status.ok()) {
            EXPECT_TRUE(absl::IsUnavailable(status)) << status;
            return;
          }
          mine.push_back(sink);
        }
      });
    }
    EXPECT_TRUE(Submit(sink_, {1}).ok());
    sink_->AwaitDeliveries(1);
    engine_->Drain(TimePoint::max());
  }
  for (const auto& mine : accepted) {
    for (const auto& sink : mine) EXPECT_EQ(sink->delivered(), 2u);
  }
}

}  // namespace
}  // namespace linserve
