#include "rpc/inference_texts.h"

#include <algorithm>
#include <utility>

#include "core/quote.h"
#include "core/tensor.h"
#include "core/text_bytes.h"

namespace linserve {
namespace {

using Input = inference::ModelInferRequest::InferInputTensor;
using Texts = std::vector<std::string_view>;

absl::Status WrongTexts(const std::string& model, const std::string& what) {
  return absl::InvalidArgumentError("input 'text' for model " + Quoted(model) + ": " + what);
}

}  // namespace

bool HasTexts(const inference::ModelInferRequest& message) {
  return std::any_of(message.inputs().begin(), message.inputs().end(),
                     [](const Input& input) { return input.name() == kTextInput; });
}

void PutBack(Received<inference::ModelInferRequest>& request) {
  for (const auto& [place, bytes] : request.large) {
    std::string& field = *request.message.mutable_raw_input_contents(place);
    field.resize(bytes.byte_size());
    bytes.CopyTo(reinterpret_cast<std::byte*>(field.data()));
  }
  request.large.clear();
}

absl::StatusOr<Texts> TextsOf(const inference::ModelInferRequest& message,
                              const std::string& model) {
  if (message.inputs_size() != 1) {
    return WrongTexts(
        model, "it stands for all inputs, but there are " + std::to_string(message.inputs_size()));
  }
  const Input& input = message.inputs(0);
  const Shape shape(input.shape().begin(), input.shape().end());
  const bool column = shape.size() == 2 && shape[1] == 1;
  if (input.datatype() != "BYTES" || (shape.size() != 1 && !column)) {
    return WrongTexts(model, "expected BYTES of shape [batch] or [batch, 1], got " +
                                 input.datatype() + " of shape " + ToString(shape));
  }
  if (input.parameters().contains("shared_memory_region")) {
    return absl::UnimplementedError("shared memory is not supported for input 'text'");
  }
  absl::StatusOr<Texts> texts = Texts();
  if (message.raw_input_contents_size() == 1) {
    texts = TextsIn(message.raw_input_contents(0));
    if (!texts.ok()) return WrongTexts(model, std::string(texts.status().message()));
  } else {
    const auto& contents = input.contents().bytes_contents();
    texts->assign(contents.begin(), contents.end());
  }
  if (std::cmp_not_equal(texts->size(), shape[0])) {
    return WrongTexts(model, std::to_string(texts->size()) + " texts, expected " +
                                 std::to_string(shape[0]) + " by its shape");
  }
  return texts;
}

}  // namespace linserve
