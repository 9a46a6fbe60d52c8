#include "serving/requests/text_requests.h"

#include <algorithm>

#include "core/strings/quote.h"
#include "core/threads/guarded.h"
#include "serving/admission.h"

namespace linserve {
namespace {

// Bounds one turn to a few milliseconds. It counts bytes of texts, or ids.
constexpr size_t kReadPerTurn = 32 << 10;
// A token of an answer with its place, as it is kept and as it is written.
constexpr int64_t kTokenBytes = 256;
// A text or a sequence, besides what it holds.
constexpr int64_t kSequenceBytes = 256;

int64_t WorkOfIds(const std::vector<int64_t>& ids) {
  constexpr size_t kBytesOfToken = 4;  // of the text that it stands for, more or less
  return WorkOfText(kBytesOfToken * ids.size());
}

absl::Status CheckSize(size_t size, const char* what, const RpcLimits& limits) {
  if (std::cmp_less_equal(size, limits.max_text_bytes)) return absl::OkStatus();
  return absl::InvalidArgumentError(std::string(what) + ", at most " +
                                    std::to_string(limits.max_text_bytes) +
                                    " are taken (max_text_bytes)");
}

}  // namespace

absl::Status TextRequestState::ReadOptions(const RpcLimits& /*limits*/, const ServedModel& model) {
  tokenizer_ = model.tokenizer;
  if (tokenizer_ != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError("model " + Quoted(model.name) +
                                    " takes no text, for it has no tokenizer");
}

absl::Status TextRequestState::Take(ServiceContext& service, const ServedModel& /*model*/,
                                    std::vector<absl::StatusOr<Item>> /*items*/) {
  StepJob job{.caller = context_.caller->name(),
              .work = std::max<int64_t>(1, left_),
              .deadline = context_.deadline,
              .step = nullptr};
  job.step = [self = shared_from_this(), this]() -> int64_t {
    const auto left = Guarded("the texts", [this]() -> absl::StatusOr<int64_t> {
      if (Abandoned()) return absl::CancelledError("the caller left");
      if (std::chrono::steady_clock::now() < context_.deadline) return Advance();
      return absl::DeadlineExceededError("the deadline passed while the texts were read");
    });
    if (left.ok()) return *left;
    Refuse(left.status());
    return 0;
  };
  service.tokenizers.Run(std::move(job));
  return absl::OkStatus();
}

std::string Tokenized::Text::TokenText(size_t index, const Tokenizer& named) const {
  const TokenPlace& place = places[index];
  if (place.is_mark) return named.PieceOf(ids[index]);
  return text.substr(place.begin, place.end - place.begin);
}

void TokenizeRequestState::Submit(ServiceContext& service, TokenizeQuery query,
                                  std::optional<Inflight::Reservation> place) {
  if (place) TakeOver(*std::move(place));
  query_ = std::move(query);
  int64_t bytes = 0;
  for (const std::string& text : query_.texts) bytes += kSequenceBytes + std::ssize(text);
  TextRequestState::Submit(
      service, FindModel(service, *context_.caller, query_.model, 0, kModelHeader), bytes);
}

absl::Status TokenizeRequestState::ReadOptions(const RpcLimits& limits, const ServedModel& model) {
  prompt_name_ = query_.prompt_name;
  absl::Status status = TextRequestState::ReadOptions(limits, model);
  if (status.ok()) status = CheckCount(std::ssize(query_.texts), limits);
  for (const std::string& text : query_.texts) {
    if (!status.ok()) return status;
    status = CheckSize(text.size(), "the text has too many bytes", limits);
  }
  return status;
}

absl::Status TokenizeRequestState::ReadItems(Tokenization& work) {
  int64_t bytes = 0;
  for (const std::string& text : query_.texts) {
    bytes += std::ssize(work.reading.prompt) + std::ssize(text);
  }
  if (absl::Status place = ReserveText(bytes); !place.ok()) return place;
  answer_.tokenizer = tokenizer_;
  for (std::string& text : query_.texts) {
    answer_.texts.push_back({work.reading.prompt + std::move(text)});
    left_ += WorkOfText(answer_.texts.back().text.size());
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> TokenizeRequestState::Advance() {
  size_t budget = kReadPerTurn;
  while (next_ < answer_.texts.size() && budget > 0) {
    Tokenized::Text& text = answer_.texts[next_];
    if (!encoding_) encoding_.emplace(*tokenizer_, text.text, query_.marks);
    absl::Status status = encoding_->Advance(budget);
    if (status.ok()) status = ReserveTokens(encoding_->ids().size());
    if (status.ok() && encoding_->done()) {
      status = End();
      budget -= std::min(budget, static_cast<size_t>(WorkOfText(0)));
    }
    if (!status.ok()) return status;
  }
  if (next_ < answer_.texts.size()) {
    const size_t read = encoding_ ? answer_.texts[next_].text.size() - encoding_->left() : 0;
    return std::max<int64_t>(1, left_ - static_cast<int64_t>(read));
  }
  answer_.sending = UntilSent();
  answered_ = true;
  done_(std::move(answer_));
  return 0;
}

// Takes room for so many tokens of the text that is being read.
absl::Status TokenizeRequestState::ReserveTokens(size_t tokens) {
  absl::Status status = ReserveBytes(kTokenBytes * static_cast<int64_t>(tokens - reserved_));
  reserved_ = tokens;
  return status;
}

// Keeps what the text became.
absl::Status TokenizeRequestState::End() {
  if (absl::Status status = encoding_->Finish(); !status.ok()) return status;
  answer_.texts[next_].ids = encoding_->ids();
  answer_.texts[next_].places = encoding_->places();
  left_ -= WorkOfText(answer_.texts[next_].text.size());
  encoding_.reset();
  reserved_ = 0;
  ++next_;
  return absl::OkStatus();
}

void DecodeRequestState::Submit(ServiceContext& service, DecodeQuery query,
                                std::optional<Inflight::Reservation> place) {
  if (place) TakeOver(*std::move(place));
  query_ = std::move(query);
  int64_t bytes = 0;
  for (const auto& ids : query_.sequences) {
    bytes += kSequenceBytes + std::ssize(ids) * int64_t{sizeof(ids[0])};
  }
  TextRequestState::Submit(
      service, FindModel(service, *context_.caller, query_.model, 0, kModelHeader), bytes);
}

absl::Status DecodeRequestState::ReadOptions(const RpcLimits& limits, const ServedModel& model) {
  absl::Status status = TextRequestState::ReadOptions(limits, model);
  if (status.ok()) status = CheckCount(std::ssize(query_.sequences), limits);
  for (const auto& ids : query_.sequences) {
    if (!status.ok()) return status;
    // Ids are decoded in one go. A token stands for several bytes, as a rule.
    constexpr size_t kBytesOfId = 16;
    status = CheckSize(kBytesOfId * ids.size(), "the sequence has too many token ids for a text",
                       limits);
  }
  return status;
}

absl::Status DecodeRequestState::ReadItems(Tokenization& /*work*/) {
  for (const auto& ids : query_.sequences) {
    left_ += WorkOfIds(ids);
    const auto unknown = std::find_if(ids.begin(), ids.end(), [&](int64_t id) {
      return id < 0 || id >= tokenizer_->vocabulary();
    });
    if (unknown == ids.end()) continue;
    return absl::InvalidArgumentError("token id " + std::to_string(*unknown) +
                                      " is not in the vocabulary, [0, " +
                                      std::to_string(tokenizer_->vocabulary()) + ")");
  }
  return absl::OkStatus();
}

// Takes room for the text that ids become, and for their pieces, of which it is made.
absl::Status DecodeRequestState::ReserveTextOf(const std::vector<int64_t>& ids) {
  int64_t bytes = 0;
  for (const int64_t id : ids) bytes += 1 + std::ssize(tokenizer_->PieceOf(id));
  absl::Status pieces = ReserveBytes(bytes + std::ssize(ids) * int64_t{sizeof(std::string)});
  return pieces.ok() ? ReserveText(bytes) : pieces;
}

absl::StatusOr<int64_t> DecodeRequestState::Advance() {
  for (size_t done = 0; done < kReadPerTurn && answer_.texts.size() < query_.sequences.size();) {
    const auto& ids = query_.sequences[answer_.texts.size()];
    if (absl::Status place = ReserveTextOf(ids); !place.ok()) return place;
    auto text = tokenizer_->Decode(ids, !query_.skip_marks);
    if (!text.ok()) return text.status();
    answer_.texts.push_back(*std::move(text));
    done += 1 + ids.size();
    left_ -= WorkOfIds(ids);
  }
  if (answer_.texts.size() < query_.sequences.size()) return std::max<int64_t>(1, left_);
  answer_.sending = UntilSent();
  answered_ = true;
  done_(std::move(answer_));
  return 0;
}

}  // namespace linserve
