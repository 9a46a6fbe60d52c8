#include "rpc/inference_texts.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "core/quote.h"
#include "core/tensor.h"

namespace linserve {
namespace {

using Input = inference::ModelInferRequest::InferInputTensor;
using Texts = std::vector<std::string_view>;

// Little-endian, before each text.
using Length = uint32_t;

absl::Status Wrong(const std::string& model, const std::string& what) {
  return absl::InvalidArgumentError("input 'text' for model " + Quoted(model) + ": " + what);
}

absl::StatusOr<Texts> FromRaw(std::string_view raw, const std::string& model) {
  Texts texts;
  while (!raw.empty()) {
    Length length = 0;
    if (raw.size() >= sizeof(length)) std::memcpy(&length, raw.data(), sizeof(length));
    if (raw.size() < sizeof(length) || raw.size() - sizeof(length) < length) {
      return Wrong(model, "text " + std::to_string(texts.size()) +
                              " ends before its length, expected 4 bytes of length before each "
                              "text's bytes");
    }
    texts.push_back(raw.substr(sizeof(length), length));
    raw.remove_prefix(sizeof(length) + length);
  }
  return texts;
}

}  // namespace

bool HasTexts(const inference::ModelInferRequest& message) {
  return std::any_of(message.inputs().begin(), message.inputs().end(),
                     [](const Input& input) { return input.name() == kTextInput; });
}

absl::StatusOr<Texts> TextsOf(const inference::ModelInferRequest& message,
                              const std::string& model) {
  if (message.inputs_size() != 1) {
    return Wrong(
        model, "it stands for all inputs, but there are " + std::to_string(message.inputs_size()));
  }
  const Input& input = message.inputs(0);
  const Shape shape(input.shape().begin(), input.shape().end());
  const bool column = shape.size() == 2 && shape[1] == 1;
  if (input.datatype() != "BYTES" || (shape.size() != 1 && !column)) {
    return Wrong(model, "expected BYTES of shape [batch] or [batch, 1], got " + input.datatype() +
                            " of shape " + ToString(shape));
  }
  if (input.parameters().contains("shared_memory_region")) {
    return absl::UnimplementedError("shared memory is not supported for input 'text'");
  }
  absl::StatusOr<Texts> texts = Texts();
  if (message.raw_input_contents_size() == 1) {
    texts = FromRaw(message.raw_input_contents(0), model);
  } else {
    const auto& contents = input.contents().bytes_contents();
    texts->assign(contents.begin(), contents.end());
  }
  if (texts.ok() && std::cmp_not_equal(texts->size(), shape[0])) {
    return Wrong(model, std::to_string(texts->size()) + " texts, expected " +
                            std::to_string(shape[0]) + " by its shape");
  }
  return texts;
}

void AppendText(std::string_view text, std::string& raw) {
  const auto length = static_cast<Length>(text.size());
  raw.append(reinterpret_cast<const char*>(&length), sizeof(length));
  raw += text;
}

}  // namespace linserve
