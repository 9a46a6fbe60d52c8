#include "rpc/tokenization.h"

#include <chrono>
#include <string>
#include <utility>

#include "core/quote.h"

namespace linserve {
namespace {

// Of one turn: under ten milliseconds.
constexpr size_t kBytesPerTurn = 32 << 10;

absl::Status PutInto(Item& item, std::string_view text, const Tokenization& work) {
  const ServedModel& model = *work.model;
  if (model.tokenizer == nullptr) {
    return absl::InvalidArgumentError("model " + Quoted(model.name) +
                                      " takes no text, for it has no tokenizer.model; send token "
                                      "ids");
  }
  if (std::cmp_greater(text.size(), work.max_text_bytes)) {
    return absl::InvalidArgumentError("the text has " + std::to_string(text.size()) +
                                      " bytes, at most " + std::to_string(work.max_text_bytes) +
                                      " are taken (max_text_bytes)");
  }
  auto ids = model.tokenizer->Encode(text);
  if (!ids.ok()) return ids.status();
  if (ids->empty()) return absl::InvalidArgumentError("the text holds no tokens");
  const Signature& signature = model.engine->info().signature;
  const InputSpec& input = *signature.FindInput(kTextBecomes);
  absl::Status status = model.tokenizer->Truncate(
      work.truncation, LongestFor(signature, item, input.axes[0].letter), *ids);
  if (!status.ok()) return status;
  const auto length = static_cast<int64_t>(ids->size());
  item.inputs[kTextBecomes] = Tensor::FromInts({length}, *ids);
  return absl::OkStatus();
}

// One turn: whether all texts are done, and `done` was called.
bool Advance(Tokenization& work, size_t& next) {
  size_t bytes = 0;
  for (; next < work.texts.size() && bytes < kBytesPerTurn; ++next) {
    const TextInput& input = work.texts[next];
    auto& item = work.items[input.item];
    if (!item.ok()) continue;
    const absl::Status status = work.abandoned() ? absl::CancelledError("the caller left")
                                                 : PutInto(*item, input.text, work);
    if (status.ok()) {
      work.model->engine->metrics().TokenizeTime(std::chrono::steady_clock::now() - work.begin);
    } else {
      item = status;
    }
    bytes += input.text.size();
  }
  if (next < work.texts.size()) return false;
  work.done(std::move(work.items));
  return true;
}

}  // namespace

void Tokenize(Turns& threads, Tokenization work) {
  if (work.texts.empty()) return work.done(std::move(work.items));
  work.begin = std::chrono::steady_clock::now();
  threads.Run([shared = std::make_shared<Tokenization>(std::move(work)),
               next = size_t{0}]() mutable { return Advance(*shared, next); });
}

}  // namespace linserve
