#include "serving/tokenization.h"

#include <algorithm>
#include <future>
#include <new>
#include <optional>

#include "core/status/retry_delay.h"
#include "support/fakes/engine_fixture.h"
#include "support/paths.h"
#include "text/sentencepiece/piece_tokenizer.h"

namespace linserve {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using Items = std::vector<absl::StatusOr<Item>>;

class TokenizationTest : public EngineTest {
 protected:
  TokenizationTest() {
    control_->longest = 1 << 30;
    Start();
    model_->engine = std::move(engine_);
    model_->tokenizer = *LoadSentencePiece(DataFile("text/tokenizer.model"));
  }

  // Holds the texts of one request, and what becomes of them.
  struct Texts {
    explicit Texts(std::vector<std::string> all) : texts(std::move(all)) {}

    std::vector<std::string> texts;
    std::promise<absl::StatusOr<Items>> promise;
    std::atomic<bool> left = false;
    std::atomic<int64_t> reserved = 0;
    std::future<absl::StatusOr<Items>> answer = promise.get_future();
  };

  Tokenization WorkOf(Texts& texts, const std::string& caller = "caller") {
    Tokenization work{.model = model_,
                      .owner = nullptr,
                      .max_text_bytes = 1 << 20,
                      .caller = caller,
                      .abandoned = [&texts] { return texts.left.load(); }};
    for (size_t i = 0; i < texts.texts.size(); ++i) {
      work.items.emplace_back(Item());
      work.texts.push_back({i, texts.texts[i]});
    }
    work.reserve = [&texts](int64_t bytes) {
      texts.reserved += bytes;
      return absl::OkStatus();
    };
    work.done = [&texts](absl::StatusOr<Items> items) {
      texts.promise.set_value(std::move(items));
    };
    return work;
  }

  static const std::string& Long() {
    static const std::string text = [] {
      std::string all;
      while (all.size() < (1 << 20) - 32) all += "the server answers ";
      return all;
    }();
    return text;
  }

  // Makes one thread wait for `let_go_`.
  void Hold() {
    std::promise<void> begun;
    pool_->Run({.caller = "held", .work = 1, .step = [&begun, go = let_go_.get_future().share()] {
                  begun.set_value();
                  go.wait();
                  return int64_t{0};
                }});
    begun.get_future().wait();
  }

  double Delay() const { return Metric("queue_delay_estimate_seconds"); }

  std::shared_ptr<ServedModel> model_ = std::make_shared<ServedModel>();
  std::promise<void> let_go_;
  std::optional<StepPool> pool_{1};
};

TEST_F(TokenizationTest, EachTextBecomesItsIdsOrItsFault) {
  Texts texts({"the server answers", "", "\xFF", std::string((1 << 20) + 1, 'a'), Long()});
  ASSERT_TRUE(Tokenize(*pool_, WorkOf(texts)).ok());
  const auto items = *texts.answer.get();
  EXPECT_EQ(items[0]->inputs.at(kTextBecomes).elements(), 10);
  EXPECT_THAT(items[1].status().message(), HasSubstr("holds no tokens"));
  EXPECT_THAT(items[2].status().message(), HasSubstr("not UTF-8"));
  EXPECT_THAT(items[3].status().message(), HasSubstr("max_text_bytes"));
  EXPECT_GT(items[4]->inputs.at(kTextBecomes).elements(), 100'000);
}

TEST_F(TokenizationTest, WithoutTruncationALongTextIsAFaultThatSaysWhatLimitsIt) {
  model_->text_limit_origin = "max_seq_length in sentence_bert_config.json";
  for (const Truncation truncation : {Truncation::kNone, Truncation::kRight}) {
    Texts texts({"the server answers"});
    Tokenization work = WorkOf(texts);
    work.truncation = truncation;
    work.reading.most_tokens = 9;
    ASSERT_TRUE(Tokenize(*pool_, std::move(work)).ok());
    const auto items = *texts.answer.get();
    if (truncation == Truncation::kNone) {
      EXPECT_THAT(items[0], IsInvalid("more than the 9 tokens that the model takes"));
      EXPECT_THAT(items[0], IsInvalid("so says max_seq_length in sentence_bert_config.json"));
    } else {
      EXPECT_EQ(items[0]->inputs.at(kTextBecomes).elements(), 9);
    }
  }
}

TEST_F(TokenizationTest, ATextOfALateInteractionModelComesWithTheMasksOfItsTask) {
  LateInteraction settings{.query_tokens = 12, .document_tokens = 4, .skipped = {"s"}};
  settings.expansion = {.length = 12, .token = "s"};
  model_->late_texts = *LateTexts::Of(settings, *model_->tokenizer);
  const auto item_of = [this](TextTask task) {
    Texts texts({"the server answers"});
    Tokenization work = WorkOf(texts);
    work.reading = {.task = task, .most_tokens = MostTextTokens(*model_, task)};
    EXPECT_TRUE(Tokenize(*pool_, std::move(work)).ok());
    return (*texts.answer.get())[0];
  };
  const auto query = item_of(TextTask::kQuery);
  EXPECT_EQ(query->inputs.at(kTextBecomes).elements(), 12);
  const Tensor seen = query->inputs.at("attention_mask");
  EXPECT_EQ(std::count(seen.bytes(), seen.bytes() + 12, std::byte{1}), 10);
  EXPECT_FALSE(query->inputs.contains("scoring_mask"));
  EXPECT_THAT(item_of(TextTask::kDocument), IsInvalid("so says document_length in its folder"));
  const auto without = item_of(TextTask::kNone);
  EXPECT_EQ(without->inputs.at(kTextBecomes).elements(), 10);
  EXPECT_EQ(without->inputs.at("scoring_mask").elements(), 10);
  EXPECT_FALSE(without->inputs.contains("attention_mask"));
}

TEST_F(TokenizationTest, ReservesTheIdsThatItMakes) {
  Texts texts({"the server answers", Long()});
  ASSERT_TRUE(Tokenize(*pool_, WorkOf(texts)).ok());
  const auto items = *texts.answer.get();
  const auto bytes =
      items[0]->inputs.at(kTextBecomes).byte_size() + items[1]->inputs.at(kTextBecomes).byte_size();
  EXPECT_GE(texts.reserved, static_cast<int64_t>(bytes));
  EXPECT_LE(texts.reserved, 3 * static_cast<int64_t>(bytes) + (64 << 10));
}

TEST_F(TokenizationTest, RefusesARequestForWhoseIdsThereIsNoRoom) {
  Texts texts({Long()});
  Tokenization work = WorkOf(texts);
  work.reserve = [](int64_t) { return absl::ResourceExhaustedError("no room"); };
  ASSERT_TRUE(Tokenize(*pool_, std::move(work)).ok());
  EXPECT_EQ(texts.answer.get().status(), absl::ResourceExhaustedError("no room"));
}

TEST_F(TokenizationTest, AnswersAtTheDeadlineWhoeverWaitsBefore) {
  std::vector<std::unique_ptr<Texts>> others;
  for (int i = 0; i < 20; ++i) {
    others.push_back(std::make_unique<Texts>(std::vector{Long()}));
  }
  Texts texts({Long()});
  Hold();
  for (const auto& other : others) ASSERT_TRUE(Tokenize(*pool_, WorkOf(*other)).ok());
  Tokenization work = WorkOf(texts);
  work.deadline = std::chrono::steady_clock::now() + 1ms;
  ASSERT_TRUE(Tokenize(*pool_, std::move(work)).ok());
  let_go_.set_value();
  EXPECT_TRUE(absl::IsDeadlineExceeded(texts.answer.get().status()));
  EXPECT_EQ(others.back()->answer.wait_for(0s), std::future_status::timeout);
  for (const auto& other : others) other->left = true;
  for (const auto& other : others) {
    const auto answer = other->answer.get();
    EXPECT_TRUE(answer.ok() || absl::IsCancelled(answer.status())) << answer.status();
  }
}

TEST_F(TokenizationTest, ALittleTextDoesNotWaitForTheBigOnesOfOthersOrOfItsCaller) {
  std::vector<std::unique_ptr<Texts>> others;
  for (int i = 0; i < 8; ++i) {
    others.push_back(std::make_unique<Texts>(std::vector(2, Long())));
    const std::string caller = i % 2 == 0 ? "caller" : "caller" + std::to_string(i);
    ASSERT_TRUE(Tokenize(*pool_, WorkOf(*others.back(), caller)).ok());
  }
  for (const char* caller : {"caller", "new"}) {
    Texts texts({"hello"});
    ASSERT_TRUE(Tokenize(*pool_, WorkOf(texts, caller)).ok());
    EXPECT_TRUE(texts.answer.get().ok());
  }
  for (const auto& other : others) {
    EXPECT_EQ(other->answer.wait_for(0s), std::future_status::timeout);
    other->left = true;
  }
  for (const auto& other : others) EXPECT_TRUE(absl::IsCancelled(other->answer.get().status()));
}

TEST_F(TokenizationTest, TheDelayEstimateCountsTheTextsThatWait) {
  Texts first({Long()});
  ASSERT_TRUE(Tokenize(*pool_, WorkOf(first)).ok());
  EXPECT_TRUE(first.answer.get().ok());
  EXPECT_TRUE(WaitUntil([&] { return Delay() == 0; }));
  Hold();
  Texts texts({Long()});
  ASSERT_TRUE(Tokenize(*pool_, WorkOf(texts)).ok());
  EXPECT_GT(Delay(), 0);
  EXPECT_GT(model_->engine->DelayEstimate(), 0ns);
  let_go_.set_value();
  EXPECT_TRUE(texts.answer.get().ok());
  EXPECT_TRUE(WaitUntil([&] { return Delay() == 0; }));
}

TEST_F(TokenizationTest, RefusesAtOnceWhatCouldNotBeDoneBeforeItsDeadline) {
  Texts first({Long()});
  ASSERT_TRUE(Tokenize(*pool_, WorkOf(first)).ok());
  EXPECT_TRUE(first.answer.get().ok());
  EXPECT_TRUE(WaitUntil([&] { return pool_->TimeFor(1 << 20) > 0ns; }));
  Texts texts(std::vector(1000, std::string(1 << 10, 'a')));
  Tokenization work = WorkOf(texts);
  work.deadline = std::chrono::steady_clock::now() + 100us;
  const absl::Status refused = Tokenize(*pool_, std::move(work));
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_THAT(refused.message(), HasSubstr("the deadline is in"));
  EXPECT_NE(RetryDelayOf(refused), std::nullopt);
}

TEST_F(TokenizationTest, MemoryThatRunsOutRefusesTheRequestAndNoOther) {
  Texts failing({"the server answers"});
  Tokenization work = WorkOf(failing);
  work.abandoned = []() -> bool { throw std::bad_alloc(); };
  ASSERT_TRUE(Tokenize(*pool_, std::move(work)).ok());
  EXPECT_EQ(failing.answer.get().status(),
            absl::ResourceExhaustedError("not enough memory for the texts"));

  Texts late({"the server answers"});
  work = WorkOf(late);
  work.done = [&late](absl::StatusOr<Items> items) {
    if (items.ok()) throw std::bad_alloc();
    late.promise.set_value(std::move(items));
  };
  ASSERT_TRUE(Tokenize(*pool_, std::move(work)).ok());
  EXPECT_EQ(late.answer.get().status(),
            absl::ResourceExhaustedError("not enough memory for the request"));

  Texts texts({"the server answers"});
  ASSERT_TRUE(Tokenize(*pool_, WorkOf(texts)).ok());
  EXPECT_TRUE(texts.answer.get().ok());
}

TEST_F(TokenizationTest, PutsThePromptBeforeEachText) {
  const auto ids_of = [&](const std::string& prompt, const std::string& text) {
    Texts texts({text});
    Tokenization work = WorkOf(texts);
    work.reading.prompt = prompt;
    EXPECT_TRUE(Tokenize(*pool_, std::move(work)).ok());
    const auto items = texts.answer.get();
    if (!items.ok()) return std::vector<int64_t>();
    const Tensor& ids = (*items)[0]->inputs.at(kTextBecomes);
    return std::vector(ids.data<int64_t>(), ids.data<int64_t>() + ids.elements());
  };
  EXPECT_EQ(ids_of("the ", "server answers"), ids_of("", "the server answers"));
  EXPECT_NE(ids_of("the ", "server answers"), ids_of("", "server answers"));
}

}  // namespace
}  // namespace linserve
