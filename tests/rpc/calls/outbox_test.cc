#include "rpc/calls/outbox.h"

#include <atomic>
#include <new>
#include <thread>

#include "rpc/embedding/result_chunker.h"
#include "rpc/messages/wire.h"
#include "rpc/parsed.h"
#include "support/test_files.h"

namespace linserve {
namespace {

using ::testing::ElementsAre;

// Notes what the outbox asks of gRPC.
class OutboxTest : public ::testing::Test {
 protected:
  // Makes an answer of `rows` messages; `owner` lives as long as it.
  static std::unique_ptr<ResultChunker> Answer(const std::string& id, int64_t rows,
                                               std::shared_ptr<void> owner = nullptr,
                                               bool together = false, int64_t width = 1) {
    ItemResult result;
    const Shape shape = {rows, width};
    const auto count = static_cast<size_t>(rows * width);
    result.outputs["y"] = Tensor::FromFloats(shape, std::vector<float>(count, 1.0F));
    const ChunkOptions options{.request_id = id, .rows_per_chunk = 1, .together = together};
    return std::make_unique<ResultChunker>(options, 0, "", std::move(result), std::move(owner));
  }
  // May share a message.
  static std::unique_ptr<ResultChunker> Shared(const std::string& id, int64_t rows,
                                               int64_t width = 1,
                                               std::shared_ptr<void> owner = nullptr) {
    return Answer(id, rows, std::move(owner), /*together=*/true, width);
  }

  static std::string PlaceOf(const v1::EmbedResponse& message) {
    std::string places = message.request_id() + "@" + std::to_string(message.row_offset());
    for (const auto& other : message.others()) places += " " + PlaceOf(other);
    return places;
  }
  static std::string PlaceOf(const grpc::ByteBuffer& bytes) {
    return PlaceOf(Parsed<v1::EmbedResponse>(bytes));
  }

  Metrics metrics_{{}};
  std::vector<std::string> written_;
  std::vector<grpc::StatusCode> finished_;
  Outbox outbox_{
      {[this](const grpc::ByteBuffer* message) { written_.push_back(PlaceOf(*message)); },
       [this](const grpc::Status& status) { finished_.push_back(status.error_code()); }},
      metrics_.ForRpc("Embed")};
};

TEST_F(OutboxTest, HasOneWriteInFlight) {
  outbox_.Push(Answer("a", 2));
  outbox_.Push(Answer("b", 1));
  EXPECT_THAT(written_, ElementsAre("a@0"));
  outbox_.Written(true);
  EXPECT_THAT(written_, ElementsAre("a@0", "a@1"));
  outbox_.Written(true);
  EXPECT_THAT(written_, ElementsAre("a@0", "a@1", "b@0"));
  outbox_.Written(true);
  EXPECT_EQ(written_.size(), 3U);
  EXPECT_TRUE(finished_.empty());
}

// Rows belong to a whole batch's memory, which an idle stream must not keep.
TEST_F(OutboxTest, HoldsNoRowsThatAreWritten) {
  auto rows = std::make_shared<std::vector<float>>(10000, 1.0F);
  const std::weak_ptr<std::vector<float>> alive = rows;
  ItemResult result;
  result.outputs["y"] = Tensor(DType::kF32, {10000, 1}, rows->data(), rows);
  rows.reset();
  outbox_.Push(std::make_unique<ResultChunker>(ChunkOptions{.request_id = "a"}, 0, "",
                                               std::move(result), nullptr));
  result.outputs.clear();
  EXPECT_FALSE(alive.expired());
  outbox_.Written(true);
  EXPECT_TRUE(alive.expired());
}

TEST_F(OutboxTest, EndsTheStreamWithTheLastMessageOfTheLastAnswer) {
  std::vector<std::string> ended;
  Outbox outbox({[this](const grpc::ByteBuffer* message) { written_.push_back(PlaceOf(*message)); },
                 [this](const grpc::Status& status) { finished_.push_back(status.error_code()); },
                 [&](const grpc::ByteBuffer* message) { ended.push_back(PlaceOf(*message)); }},
                metrics_.ForRpc("Embed"));
  bool held = true;
  outbox.Expect(2);
  outbox.Push(Answer("a", 1));
  outbox.Push(Answer("b", 2, std::shared_ptr<void>(nullptr, [&](void*) { held = false; })));
  outbox.Written(true);
  EXPECT_THAT(written_, ElementsAre("a@0", "b@0"));
  EXPECT_TRUE(ended.empty());
  outbox.Written(true);
  EXPECT_THAT(ended, ElementsAre("b@1"));
  outbox.FinishWhenEmpty(grpc::Status::OK);
  outbox.Cancel();
  EXPECT_TRUE(finished_.empty());
  EXPECT_TRUE(held);
  outbox.Closed();
  EXPECT_FALSE(held);
}

// Several replicas may answer the sequences of one request, and any of them may be the last.
TEST_F(OutboxTest, EndsWithNoneButTheLastOfTheAnswersItExpects) {
  constexpr size_t kAnswers = 8;
  size_t ended = 0;
  Outbox outbox({[this](const grpc::ByteBuffer* message) { written_.push_back(PlaceOf(*message)); },
                 [this](const grpc::Status& status) { finished_.push_back(status.error_code()); },
                 [&](const grpc::ByteBuffer*) { ++ended; }},
                metrics_.ForRpc("Embed"));
  outbox.Expect(kAnswers);
  for (size_t i = 0; i + 1 < kAnswers; ++i) {
    outbox.Push(Answer("a", 1));
    outbox.Written(true);
  }
  EXPECT_EQ(ended, 0U);
  outbox.Push(Answer("a", 1));
  EXPECT_EQ(ended, 1U);
  EXPECT_EQ(written_.size(), kAnswers - 1);
}

TEST_F(OutboxTest, FinishesOnceWhenAllIsWritten) {
  outbox_.Push(Answer("a", 1));
  outbox_.FinishWhenEmpty({grpc::StatusCode::UNAVAILABLE, ""});
  outbox_.FinishWhenEmpty(grpc::Status::OK);
  EXPECT_TRUE(finished_.empty());
  outbox_.Written(true);
  EXPECT_THAT(finished_, ElementsAre(grpc::StatusCode::UNAVAILABLE));
  outbox_.Push(Answer("late", 1));
  outbox_.FinishWhenEmpty(grpc::Status::OK);
  outbox_.Cancel();
  EXPECT_THAT(written_, ElementsAre("a@0"));
  EXPECT_EQ(finished_.size(), 1U);
}

TEST_F(OutboxTest, AnEmptyOneFinishesAtOnce) {
  outbox_.FinishWhenEmpty(grpc::Status::OK);
  EXPECT_THAT(finished_, ElementsAre(grpc::StatusCode::OK));
}

TEST_F(OutboxTest, CancellingDropsWhatWaitsAndEndsAfterTheWriteInFlight) {
  auto owner = std::make_shared<int>(1);
  outbox_.Push(Answer("a", 5, owner));
  outbox_.Push(Answer("b", 1, owner));
  outbox_.Cancel();
  EXPECT_TRUE(outbox_.cancelled());
  EXPECT_TRUE(finished_.empty());
  EXPECT_EQ(owner.use_count(), 2);  // the answer that is being written holds one
  outbox_.Written(false);
  EXPECT_THAT(finished_, ElementsAre(grpc::StatusCode::CANCELLED));
  EXPECT_EQ(owner.use_count(), 1);
  outbox_.Push(Answer("c", 1, owner));
  EXPECT_EQ(owner.use_count(), 1);
  EXPECT_THAT(written_, ElementsAre("a@0"));
}

TEST_F(OutboxTest, CancellingAnIdleOneFinishesAtOnce) {
  outbox_.Cancel();
  outbox_.Cancel();
  EXPECT_THAT(finished_, ElementsAre(grpc::StatusCode::CANCELLED));
}

TEST_F(OutboxTest, AFailedWriteEndsTheStream) {
  outbox_.Push(Answer("a", 2));
  outbox_.Push(Answer("b", 1));
  outbox_.Written(false);
  EXPECT_TRUE(outbox_.cancelled());
  EXPECT_THAT(written_, ElementsAre("a@0"));
  EXPECT_THAT(finished_, ElementsAre(grpc::StatusCode::CANCELLED));
}

TEST_F(OutboxTest, TheEndOfAnAnswersOwnerMayFinishTheStream) {
  outbox_.Push(Answer("a", 1, std::shared_ptr<void>(nullptr, [this](void*) {
                        outbox_.FinishWhenEmpty(grpc::Status::OK);
                      })));
  EXPECT_TRUE(finished_.empty());
  outbox_.Written(true);
  EXPECT_THAT(finished_, ElementsAre(grpc::StatusCode::OK));
}

TEST_F(OutboxTest, WhatIsReadyAndMayShareAMessageComesInOne) {
  outbox_.Push(Shared("a", 1));
  EXPECT_THAT(written_, ElementsAre("a@0"));  // nothing waits for others
  auto owner = std::make_shared<int>(1);
  outbox_.Push(Shared("b", 2));
  outbox_.Push(Shared("c", 1, 1, owner));
  outbox_.Push(Shared("d", 2, 1, owner));
  outbox_.Push(Answer("e", 1));
  outbox_.Push(Shared("f", 1));
  outbox_.Written(true);
  outbox_.Written(true);
  // The first of b goes alone, since its second is a message of its own.
  EXPECT_THAT(written_, ElementsAre("a@0", "b@0", "b@1 c@0 d@0"));
  EXPECT_EQ(owner.use_count(), 3);
  outbox_.Written(true);
  EXPECT_EQ(owner.use_count(), 2);  // c has ended, d goes on
  for (int i = 0; i < 3; ++i) outbox_.Written(true);
  EXPECT_THAT(written_, ElementsAre("a@0", "b@0", "b@1 c@0 d@0", "d@1", "e@0", "f@0"));
  EXPECT_EQ(owner.use_count(), 1);
}

TEST_F(OutboxTest, ALongMessageTakesNoOthers) {
  outbox_.Push(Shared("a", 1));
  for (const char* id : {"b", "c", "d"}) outbox_.Push(Shared(id, 1, 10000));
  outbox_.Written(true);
  outbox_.Written(true);
  EXPECT_THAT(written_, ElementsAre("a@0", "b@0 c@0", "d@0"));
}

// Answers with a message, and then finds no memory for another one.
class StarvedAnswer : public Answer {
 public:
  explicit StarvedAnswer(std::shared_ptr<void> owner) : owner_(std::move(owner)) {}

  bool Next(WireMessage& message) override {
    if (std::exchange(begun_, true)) throw std::bad_alloc();
    message.Add(v1::EmbedResponse());
    return false;
  }

 private:
  const std::shared_ptr<void> owner_;
  bool begun_ = false;
};

TEST_F(OutboxTest, AnAnswerThatCannotBeMadeEndsTheStream) {
  auto owner = std::make_shared<int>(1);
  outbox_.Push(std::make_unique<StarvedAnswer>(owner));
  outbox_.Push(Answer("b", 1, owner));
  EXPECT_TRUE(finished_.empty());
  outbox_.Written(true);
  EXPECT_THAT(finished_, ElementsAre(grpc::StatusCode::RESOURCE_EXHAUSTED));
  EXPECT_TRUE(outbox_.cancelled());
  EXPECT_EQ(written_.size(), 1U);
  EXPECT_EQ(owner.use_count(), 1);
  outbox_.Cancel();
  outbox_.FinishWhenEmpty(grpc::Status::OK);
  EXPECT_EQ(finished_.size(), 1U);
}

TEST_F(OutboxTest, DropsWhatIsPushedOnceTheEndIsKnown) {
  outbox_.Push(Answer("a", 2));
  outbox_.FinishWhenEmpty({grpc::StatusCode::NOT_FOUND, ""});
  outbox_.Push(Answer("b", 1));
  outbox_.Written(true);
  outbox_.Written(true);
  EXPECT_THAT(written_, ElementsAre("a@0", "a@1"));
  EXPECT_THAT(finished_, ElementsAre(grpc::StatusCode::NOT_FOUND));
}

// Finds no memory for the message that it is to share with others.
class StarvedOther : public Answer {
 public:
  explicit StarvedOther(std::shared_ptr<void> owner) : owner_(std::move(owner)) {}

  bool Next(WireMessage& /*message*/) override { throw std::bad_alloc(); }
  int field_of_others() const override { return v1::EmbedResponse::kOthersFieldNumber; }

 private:
  const std::shared_ptr<void> owner_;
};

TEST_F(OutboxTest, WhatWasToShareAMessageThatCannotBeMadeGoesWithIt) {
  auto owner = std::make_shared<int>(1);
  outbox_.Push(Shared("a", 1));
  outbox_.Push(Shared("b", 1, 1, owner));
  outbox_.Push(std::make_unique<StarvedOther>(owner));
  outbox_.Push(Shared("c", 1, 1, owner));
  outbox_.Written(true);
  EXPECT_THAT(written_, ElementsAre("a@0"));
  EXPECT_THAT(finished_, ElementsAre(grpc::StatusCode::RESOURCE_EXHAUSTED));
  EXPECT_EQ(owner.use_count(), 1);
}

class OutboxThreads : public testing::Test {
 protected:
  static constexpr int kThreads = 4;
  static constexpr int kAnswers = 500;

  // Pushes all answers from several threads, and tells the outbox that each write is done.
  void PushAndWrite(Outbox& outbox, int writes) {
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        for (int n = 0; n < kAnswers; ++n) {
          outbox.Push(std::make_unique<ResultChunker>(ChunkOptions{}, 0, "",
                                                      absl::InternalError("x"), nullptr));
        }
      });
    }
    for (int written = 0; written < writes;) {
      if (due_ == 0) {
        std::this_thread::yield();
        continue;
      }
      --due_;
      --writing_;
      ++written;
      outbox.Written(true);
    }
    for (std::thread& thread : threads) thread.join();
  }

  const Outbox::Hooks hooks_ = {[this](const grpc::ByteBuffer*) {
                                  EXPECT_EQ(++writing_, 1);
                                  ++due_;
                                },
                                [this](const grpc::Status&) { ++finished_; },
                                {}};
  Metrics metrics_{{}};
  std::atomic<int> writing_ = 0;
  std::atomic<int> due_ = 0;
  std::atomic<int> finished_ = 0;
};

TEST_F(OutboxThreads, ManyPushWhileOneWrites) {
  Outbox outbox(hooks_, metrics_.ForRpc("Embed"));
  PushAndWrite(outbox, kThreads * kAnswers);
  outbox.FinishWhenEmpty(grpc::Status::OK);
  EXPECT_EQ(finished_, 1);
}

TEST_F(OutboxThreads, WhoeverPushesLastEndsTheStream) {
  std::atomic<int> ended = 0;
  Outbox::Hooks hooks = hooks_;
  hooks.write_and_finish = [&](const grpc::ByteBuffer*) {
    EXPECT_EQ(writing_, 0);
    ++ended;
  };
  Outbox outbox(hooks, metrics_.ForRpc("Embed"));
  outbox.Expect(kThreads * kAnswers);
  PushAndWrite(outbox, kThreads * kAnswers - 1);
  EXPECT_EQ(ended, 1);
  EXPECT_EQ(finished_, 0);
}

}  // namespace
}  // namespace linserve
