#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/json/json_string.h"
#include "serving/request.h"
#include "serving/requests/embeddings_request.h"
#include "text/text_encoding.h"

namespace linserve {

// Represents a request that a model's tokenizer answers alone. It is done in turns on the threads
// where texts become token ids.
class TextRequestState : public RequestState {
 public:
  TextRequestState(CallSide call, RequestContext context)
      : RequestState(std::move(call), std::move(context)) {
    computes_ = false;
  }

 protected:
  // Answers that the model takes no text. Else the tokenizer is there from now on.
  absl::Status ReadOptions(const RpcLimits& limits, const ServedModel& model) override;
  // Does a part of the work, of a few milliseconds, and returns how much is left; 0: all is
  // answered. An error refuses the request.
  virtual absl::StatusOr<int64_t> Advance() = 0;

  // Takes room for what an answer takes that has so many bytes more, whose JSON may be copied once.
  absl::Status ReserveText(int64_t bytes) { return ReserveBytes(2 * kJsonOfTextByte * bytes); }

  std::shared_ptr<const Tokenizer> tokenizer_;
  int64_t left_ = 0;  // work, as WorkOfText() counts it

 private:
  absl::Status Take(ServiceContext& service, const ServedModel& model,
                    std::vector<absl::StatusOr<Item>> items) final;
  void TakeResult(size_t /*index*/, absl::StatusOr<ItemResult> /*result*/) final {}
};

struct TokenizeQuery {
  std::string model;  // "": the only model
  Texts texts{};
  bool marks = true;  // as the model is served
  std::string prompt_name{};
};

// Holds the tokens of texts. With its prompt a text is what the places are of.
struct Tokenized {
  struct Text {
    std::string text;
    std::vector<int64_t> ids{};
    std::vector<TokenPlace> places{};  // of each id

    // Returns what a token is: a part of the text, or a mark's name.
    std::string TokenText(size_t index, const Tokenizer& named) const;
  };

  std::shared_ptr<const Tokenizer> tokenizer;
  std::vector<Text> texts;
  std::shared_ptr<Sending> sending;  // held until the answer is sent
};

// Answers which tokens texts become.
class TokenizeRequestState : public TextRequestState {
 public:
  using Query = TokenizeQuery;
  using Answered = Tokenized;
  using Done = std::function<void(absl::StatusOr<Tokenized>)>;

  TokenizeRequestState(CallSide call, RequestContext context, Done done)
      : TextRequestState(std::move(call), std::move(context)), done_(std::move(done)) {}

  // Takes a place over that was reserved for the message; without one, it is reserved now.
  void Submit(ServiceContext& service, TokenizeQuery query,
              std::optional<Inflight::Reservation> place = std::nullopt);

 private:
  absl::Status ReadOptions(const RpcLimits& limits, const ServedModel& model) override;
  absl::Status ReadItems(Tokenization& work) override;
  absl::StatusOr<int64_t> Advance() override;
  absl::Status ReserveTokens(size_t tokens);
  absl::Status End();
  void AnswerRefusal(const absl::Status& status) override { done_(status); }

  const Done done_;
  TokenizeQuery query_;
  Tokenized answer_;
  size_t next_ = 0;                       // text
  std::optional<TextEncoding> encoding_;  // of the next text, once it is begun
  size_t reserved_ = 0;                   // tokens of it that there is room for
};

struct DecodeQuery {
  std::string model;  // "": the only model
  IdSequences sequences{};
  bool skip_marks = true;
};

struct Decoded {
  Texts texts;
  std::shared_ptr<Sending> sending;  // held until the answer is sent
};

// Answers which texts token ids stand for.
class DecodeRequestState : public TextRequestState {
 public:
  using Query = DecodeQuery;
  using Answered = Decoded;
  using Done = std::function<void(absl::StatusOr<Decoded>)>;

  DecodeRequestState(CallSide call, RequestContext context, Done done)
      : TextRequestState(std::move(call), std::move(context)), done_(std::move(done)) {}

  // Takes a place over that was reserved for the message; without one, it is reserved now.
  void Submit(ServiceContext& service, DecodeQuery query,
              std::optional<Inflight::Reservation> place = std::nullopt);

 private:
  absl::Status ReadOptions(const RpcLimits& limits, const ServedModel& model) override;
  absl::Status ReadItems(Tokenization& work) override;
  absl::StatusOr<int64_t> Advance() override;
  absl::Status ReserveTextOf(const std::vector<int64_t>& ids);
  void AnswerRefusal(const absl::Status& status) override { done_(status); }

  const Done done_;
  DecodeQuery query_;
  Decoded answer_;
};

}  // namespace linserve
