#include "serving/tokenization.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "core/sequence/truncation.h"
#include "core/status/retry_delay.h"
#include "core/strings/quote.h"
#include "core/threads/guarded.h"
#include "text/text_encoding.h"

namespace linserve {
namespace {

// Names the model's input that says which token is of which text.
constexpr const char* kTypesOfTexts = "token_type_ids";

// Name the inputs of a late-interaction model that say which tokens others see, and of which rows
// are given.
constexpr const char* kSeen = "attention_mask";
constexpr const char* kGiven = "scoring_mask";

// Names the input of a model that was trained to pool no rows of a prompt.
constexpr const char* kPooled = "pooling_mask";

// Bounds one turn to a few milliseconds. It counts the bytes of the texts and what they become.
constexpr size_t kWorkPerTurn = 32 << 10;

Tensor MaskOf(const std::vector<bool>& rows) {
  auto [mask, bytes] = Tensor::AllocateUnfilled(DType::kBool, {std::ssize(rows)});
  std::transform(rows.begin(), rows.end(), bytes, [](bool row) { return std::byte{row}; });
  return mask;
}

// Says whether two views are of the same bytes, and not only of equal ones.
bool AreOne(std::string_view a, std::string_view b) {
  return a.data() == b.data() && a.size() == b.size();
}

const TextReading& ReadingOf(const Tokenization& work, const TextInput& input) {
  return input.reading ? *input.reading : work.reading;
}

// Returns how many bytes of a request's texts are read for this one of them: the first text of
// pairs that follow each other is read once.
size_t BytesToRead(const Tokenization& work, size_t index) {
  const TextInput& input = work.texts[index];
  const bool known = index > 0 && input.second && !work.model->pair_text &&
                     AreOne(input.text, work.texts[index - 1].text);
  if (known) return input.second->size();
  return ReadingOf(work, input).prompt.size() + input.bytes();
}

int64_t WorkOf(const Tokenization& work) {
  int64_t all = 0;
  for (size_t i = 0; i < work.texts.size(); ++i) all += WorkOfText(BytesToRead(work, i));
  return all;
}

// Holds the texts of a request while they are tokenized turn by turn.
class TextWork {
 public:
  TextWork(Tokenization work, int64_t left, std::chrono::nanoseconds expected)
      : work_(std::move(work)), left_(left), expected_(expected) {
    work_.model->engine->Expect(expected_);
  }
  ~TextWork() { work_.model->engine->Expect(-expected_); }
  TextWork(const TextWork&) = delete;
  TextWork& operator=(const TextWork&) = delete;

  // Takes one turn, and returns how much work is left; 0: `done` was called.
  int64_t Step() {
    absl::Status status = Guarded("the texts", [this] { return Turn(); });
    if (status.ok() && next_ < work_.texts.size()) return Left();
    encoding_.reset();
    if (status.ok()) {
      status = Guarded("the request", [this] { work_.done(std::move(work_.items)); });
    }
    if (!status.ok()) RunGuarded("a refusal", [&] { work_.done(status); });
    return 0;
  }

 private:
  // Returns how much work is left, of which there is some.
  int64_t Left() const {
    int64_t left = left_;
    if (encoding_) {
      left += static_cast<int64_t>(encoding_->left());
      left -= static_cast<int64_t>(BytesToRead(work_, next_));
    }
    return std::max<int64_t>(1, left);
  }

  // An error refuses the request.
  absl::Status Turn() {
    if (absl::Status status = CheckWaiting(); !status.ok()) return status;
    size_t budget = kWorkPerTurn;
    while (next_ < work_.texts.size() && budget > 0) GoOn(budget);
    // The ids of a text that is begun will be copied.
    const size_t begun = encoding_
                             ? encoding_->held_bytes() + sizeof(int64_t) * encoding_->ids().size() +
                                   prompted_.capacity()
                             : 0;
    const size_t bytes = item_bytes_ + begun;
    if (bytes <= reserved_) return absl::OkStatus();
    absl::Status status = work_.reserve(static_cast<int64_t>(bytes - reserved_));
    reserved_ = bytes;
    return status;
  }

  // Returns OK if somebody waits for the texts.
  absl::Status CheckWaiting() const {
    absl::Status status;
    if (std::chrono::steady_clock::now() >= work_.deadline) {
      status = absl::DeadlineExceededError("the deadline passed while the texts were tokenized");
    } else if (work_.abandoned()) {
      status = absl::CancelledError("the caller left while the texts were tokenized");
    }
    if (status.ok()) return status;
    for (size_t i = 0; i < work_.items.size(); ++i) {
      work_.model->engine->metrics().Abandoned(AbandonStage::kQueue);
    }
    return status;
  }

  // Goes on with the next text, until it is done or nothing is left of `budget`.
  void GoOn(size_t& budget) {
    const TextInput& input = work_.texts[next_];
    auto& item = work_.items[input.item];
    absl::Status status = item.status();
    if (status.ok() && !encoding_) status = Begin(*item, input);
    if (status.ok()) status = encoding_->Advance(budget);
    if (status.ok() && !encoding_->done()) return;
    if (status.ok()) status = End(*item, input);
    if (!status.ok()) item = status;
    encoding_.reset();
    left_ -= WorkOfText(BytesToRead(work_, next_));
    budget -= std::min(budget, static_cast<size_t>(WorkOfText(0)));
    ++next_;
  }

  absl::Status Begin(const Item& item, const TextInput& input) {
    const ServedModel& model = *work_.model;
    if (model.tokenizer == nullptr) {
      return absl::InvalidArgumentError("model " + Quoted(model.name) +
                                        " takes no text, for it has no tokenizer; send "
                                        "token ids");
    }
    const TextReading& reading = ReadingOf(work_, input);
    const size_t bytes = reading.prompt.size() + input.bytes();
    if (std::cmp_greater(bytes, work_.max_text_bytes)) {
      return absl::InvalidArgumentError((input.second ? "the two texts have " : "the text has ") +
                                        std::to_string(bytes) + " bytes, at most " +
                                        std::to_string(work_.max_text_bytes) +
                                        " are taken (max_text_bytes)");
    }
    const Signature& signature = model.engine->info().signature;
    const char letter = signature.FindInput(kTextBecomes)->axes[0].letter;
    const int64_t longest = MostTokens(work_, reading, item, letter);
    if (!input.second) {
      std::string_view text = Prompted(reading.prompt, input.text);
      if (model.static_texts && work_.truncation == Truncation::kRight) {
        text = model.static_texts->Read(text, longest);
      }
      encoding_.emplace(*model.tokenizer, text, work_.truncation, longest);
      return absl::OkStatus();
    }
    if (model.late_texts) {
      return absl::InvalidArgumentError("model " + Quoted(model.name) +
                                        " is a late-interaction model, which reads one text at a "
                                        "time; compare the rows of two, as /rerank does");
    }
    if (model.pair_text) {
      prompted_ = model.pair_text->Write(reading.prompt, input.text, *input.second);
      encoding_.emplace(*model.tokenizer, prompted_, work_.truncation, longest,
                        model.pair_text->marks());
      return absl::OkStatus();
    }
    if (!model.tokenizer->pair()) {
      return absl::InvalidArgumentError(
          "model " + Quoted(model.name) + " reads one text at a time: its " +
          model.tokenizer->file() + " does not say what two that are read together become");
    }
    if (!AreOne(input.text, first_text_)) first_.reset();
    encoding_.emplace(*model.tokenizer, first_ ? input.text : Prompted(reading.prompt, input.text),
                      *input.second, work_.truncation, longest, first_);
    return absl::OkStatus();
  }

  // Returns a text with the prompt before it.
  std::string_view Prompted(const std::string& prompt, std::string_view text) {
    return prompt.empty() ? text : prompted_ = prompt + std::string(text);
  }

  absl::Status End(Item& item, const TextInput& input) {
    first_ = encoding_->first();
    first_text_ = input.text;
    absl::Status finished = encoding_->Finish();
    if (!finished.ok()) return WithOrigin(finished, input, item);
    if (absl::Status status = AddIds(input, item); !status.ok()) return status;
    if (absl::Status status = AddPooled(ReadingOf(work_, input), item); !status.ok()) return status;
    if (absl::Status status = AddTypes(item); !status.ok()) return status;
    work_.model->engine->metrics().TokenizeTime(std::chrono::steady_clock::now() - work_.begin);
    return absl::OkStatus();
  }

  absl::Status AddIds(const TextInput& input, Item& item) {
    LateText text{.ids = encoding_->ids()};
    const auto& late = work_.model->late_texts;
    if (work_.model->static_texts) work_.model->static_texts->LeaveOut(text.ids);
    if (text.ids.empty()) return AddNothing(item);
    if (late) text = late->Read(ReadingOf(work_, input).task, std::move(text.ids));
    Add(kTextBecomes, Tensor::FromInts({std::ssize(text.ids)}, text.ids), item);
    if (!text.seen.empty()) Add(kSeen, MaskOf(text.seen), item);
    if (text.given.empty()) return absl::OkStatus();
    const bool none = std::find(text.given.begin(), text.given.end(), true) == text.given.end();
    if (none && item.options.pooling != Pooling::kNone) {
      return absl::InvalidArgumentError(
          "no token of the text has a row that counts (skiplist_words), of which a vector is made");
    }
    Add(kGiven, MaskOf(text.given), item);
    return absl::OkStatus();
  }

  // Gives a model that makes something of it a text without a token: one that is hidden.
  absl::Status AddNothing(Item& item) {
    const Signature& signature = work_.model->engine->info().signature;
    if (!signature.outputs[0].of_nothing) {
      return absl::InvalidArgumentError("the text holds no tokens");
    }
    Add(kTextBecomes, Tensor::FromInts({1}, {0}), item);
    Add(kSeen, MaskOf({false}), item);
    return absl::OkStatus();
  }

  // Says which tokens are behind the prompt. It has as many as by itself, without a mark at its
  // end.
  absl::Status AddPooled(const TextReading& reading, Item& item) {
    const ServedModel& model = *work_.model;
    const bool asked = model.engine->info().signature.FindInput(kPooled) != nullptr;
    if (!asked || reading.prompt.empty()) return absl::OkStatus();
    if (!prompt_tokens_) {
      const auto ids = model.tokenizer->Encode(reading.prompt);
      if (!ids.ok()) return ids.status();
      prompt_tokens_ = ids->size() - (model.tokenizer->end_mark() ? 1 : 0);
    }
    std::vector<bool> behind(encoding_->ids().size(), true);
    std::fill_n(behind.begin(), std::min(*prompt_tokens_, behind.size()), false);
    if (*prompt_tokens_ >= behind.size()) {
      return absl::InvalidArgumentError("the text has " + std::to_string(behind.size()) +
                                        " tokens, and " + std::to_string(*prompt_tokens_) +
                                        " are the prompt's, of which nothing is pooled");
    }
    Add(kPooled, MaskOf(behind), item);
    return absl::OkStatus();
  }

  void Add(const char* name, const Tensor& tensor, Item& item) {
    item_bytes_ += tensor.byte_size();
    item.inputs[name] = tensor;
  }

  // Tells a model that asks for it which token is of which text.
  absl::Status AddTypes(Item& item) {
    const std::vector<int64_t>& types = encoding_->types();
    const InputSpec* input = work_.model->engine->info().signature.FindInput(kTypesOfTexts);
    if (types.empty() || input == nullptr) return absl::OkStatus();
    const int64_t highest = *std::max_element(types.begin(), types.end());
    if (highest >= input->vocabulary) {
      return absl::InvalidArgumentError("the tokenizer gives the second text the type " +
                                        std::to_string(highest) +
                                        ", but the model has types below " +
                                        std::to_string(input->vocabulary) + " (type_vocab_size)");
    }
    Add(kTypesOfTexts, Tensor::FromInts({std::ssize(types)}, types), item);
    return absl::OkStatus();
  }

  // Says what limits the text, where it is not the model itself.
  absl::Status WithOrigin(const absl::Status& too_long, const TextInput& input,
                          const Item& item) const {
    const ServedModel& model = *work_.model;
    const Signature& signature = model.engine->info().signature;
    const char letter = signature.FindInput(kTextBecomes)->axes[0].letter;
    const int64_t longest = LongestFor(signature, item, letter);
    const TextReading& reading = ReadingOf(work_, input);
    if (MostTokens(work_, reading, item, letter) == longest) return too_long;
    std::string origin = model.text_limit_origin;
    if (model.late_texts && model.late_texts->MostTokens(reading.task)) {
      const bool is_query = reading.task == TextTask::kQuery;
      origin = std::string(is_query ? "query" : "document") + "_length in its folder";
    }
    return absl::InvalidArgumentError(std::string(too_long.message()) + "; so says " + origin);
  }

  Tokenization work_;
  int64_t left_;  // of the texts that are not done
  const std::chrono::nanoseconds expected_;
  size_t next_ = 0;
  std::string prompted_;  // the text that is begun, if there is more before it
  // These are of the pair before; the next may have the same first text.
  std::shared_ptr<const FirstText> first_;
  std::optional<size_t> prompt_tokens_;  // of the prompt that all of these texts have
  std::string_view first_text_;
  std::optional<TextEncoding> encoding_;  // of the next text, once it is begun
  size_t item_bytes_ = 0;                 // of the ids in items
  size_t reserved_ = 0;
};

std::string Milliseconds(std::chrono::nanoseconds time) {
  return std::to_string(std::chrono::ceil<std::chrono::milliseconds>(time).count()) + " ms";
}

// Returns OK if the texts may be tokens before the deadline.
absl::Status CheckDeadline(const StepPool& threads, const Tokenization& work, int64_t left) {
  if (work.deadline == TimePoint::max()) return absl::OkStatus();
  const auto slack = work.deadline - std::chrono::steady_clock::now();
  const auto needed = threads.TimeUntilDone(work.caller, left, slack);
  if (needed.count() == 0) return absl::OkStatus();
  Engine& engine = *work.model->engine;
  engine.metrics().Rejected(RejectReason::kDeadline);
  return RetryAfter(
      absl::ResourceExhaustedError("the deadline is in " + Milliseconds(slack) +
                                   ", but to tokenize the texts takes " + Milliseconds(needed) +
                                   " with those that wait; try again later, or another server"),
      engine.RetryDelay());
}

}  // namespace

int64_t MostTextTokens(const ServedModel& model, TextTask task) {
  const auto own = model.late_texts ? model.late_texts->MostTokens(task) : std::nullopt;
  return own.value_or(model.most_text_tokens);
}

int64_t MostTokens(const Tokenization& work, const TextReading& reading, const Item& item,
                   char letter) {
  return SmallerLimit(reading.most_tokens,
                      LongestFor(work.model->engine->info().signature, item, letter));
}

absl::Status Tokenize(StepPool& threads, Tokenization work) {
  if (work.texts.empty()) {
    work.done(std::move(work.items));
    return absl::OkStatus();
  }
  work.begin = std::chrono::steady_clock::now();
  const int64_t left = WorkOf(work);
  if (absl::Status status = CheckDeadline(threads, work, left); !status.ok()) return status;
  StepJob job{.caller = work.caller, .work = left, .deadline = work.deadline, .step = nullptr};
  job.step = [texts = std::make_shared<TextWork>(std::move(work), left, threads.TimeFor(left))] {
    return texts->Step();
  };
  threads.Run(std::move(job));
  return absl::OkStatus();
}

}  // namespace linserve
