#include "engine/generation/generation.h"

#include <algorithm>
#include <utility>

#include "core/sequence/session_state.h"
#include "core/sequence/signature.h"

namespace linserve {
namespace {

// Rows of a prompt are read in steps of so many. Those who generate at the same time share the
// step, and wait for no more.
constexpr int64_t kRowsAtOnce = 256;

const OutputSpec* LogitsOf(const Signature& signature) {
  const auto found = std::find_if(signature.outputs.begin(), signature.outputs.end(),
                                  [](const OutputSpec& output) { return output.logits; });
  return found == signature.outputs.end() ? nullptr : &*found;
}

}  // namespace

std::string_view Name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kMaxTokens:
      return "max_tokens";
    case FinishReason::kLength:
      return "length";
  }
  return "";
}

absl::Status Generation::Check(const ModelInfo& info) {
  std::string why;
  if (info.sessions == nullptr) why = "it has no sessions: " + info.no_sessions;
  if (why.empty() && LogitsOf(info.signature) == nullptr)
    why = "it gives no logits of a next token";
  if (why.empty()) return absl::OkStatus();
  return absl::UnimplementedError(info.architecture + " cannot generate, since " + why);
}

absl::StatusOr<Item> Generation::Begin(const ModelInfo& info, std::string id, TensorMap inputs,
                                       GenerationOptions options, OnToken on_token) {
  const std::string& output = LogitsOf(info.signature)->name;
  const InputSpec& input = ChunkInput(info.signature);
  auto chunk = std::make_shared<SessionChunk>();
  chunk->id = std::move(id);
  chunk->start = true;
  chunk->end = true;
  Item item;
  item.inputs = std::move(inputs);
  item.options.outputs = {output};
  item.options.pooling = Pooling::kLast;
  item.chunk = std::move(chunk);
  if (absl::Status status = Validate(info.signature, item); !status.ok()) return status;
  const Tensor prompt = item.inputs.at(input.name);
  const int64_t length = prompt.elements();
  const int64_t longest = LongestFor(info.signature, item, input.axes[0].letter);
  // Nobody reads the last token, so it needs no room.
  const int64_t room = longest == 0 ? 0 : longest - length + 1;
  const int64_t read = std::min(length, kRowsAtOnce);
  item.inputs[input.name] = prompt.Rows(0, read);
  item.then = std::make_shared<Generation>(std::move(options), input.name, output, prompt, read,
                                           room, std::move(on_token));
  return item;
}

Generation::Generation(GenerationOptions options, std::string input, std::string output,
                       Tensor prompt, int64_t read, int64_t room, OnToken on_token)
    : options_(std::move(options)),
      input_(std::move(input)),
      output_(std::move(output)),
      prompt_(std::move(prompt)),
      read_(read),
      room_(room),
      on_token_(std::move(on_token)),
      sampler_(options_.sampling) {}

std::optional<TensorMap> Generation::Next(const ItemResult& result) {
  if (read_ < prompt_.elements()) {
    const int64_t begin = read_;
    read_ = std::min(prompt_.elements(), begin + kRowsAtOnce);
    return TensorMap{{input_, prompt_.Rows(begin, read_)}};
  }
  const Tensor& logits = result.outputs.at(output_);
  const int64_t token = sampler_.Sample(logits.data<float>(), logits.elements());
  ++generated_;
  on_token_(token);
  if (options_.stop_tokens.contains(token)) {
    reason_ = FinishReason::kStop;
    return std::nullopt;
  }
  if (generated_ == options_.max_tokens) return std::nullopt;
  if (generated_ == room_) {
    reason_ = FinishReason::kLength;
    return std::nullopt;
  }
  return TensorMap{{input_, Tensor::FromInts({1}, {token})}};
}

}  // namespace linserve
