#include "rpc/oip/inference_texts.h"

#include <algorithm>
#include <utility>

#include "core/strings/quote.h"
#include "core/tensor/tensor.h"
#include "core/tensor/text_bytes.h"

namespace linserve {
namespace {

using Input = inference::ModelInferRequest::InferInputTensor;
using TextViews = std::vector<std::string_view>;

absl::Status WrongTexts(const std::string& model, const std::string& what) {
  return absl::InvalidArgumentError("input 'text' for model " + Quoted(model) + ": " + what);
}

}  // namespace

bool HasTexts(const inference::ModelInferRequest& message) {
  return std::any_of(message.inputs().begin(), message.inputs().end(),
                     [](const Input& input) { return input.name() == kTextInput; });
}

absl::StatusOr<int64_t> CountTexts(const inference::ModelInferRequest& message,
                                   const std::string& model) {
  if (message.inputs_size() != 1) {
    return WrongTexts(
        model, "it stands for all inputs, but there are " + std::to_string(message.inputs_size()));
  }
  const Input& input = message.inputs(0);
  const Shape shape(input.shape().begin(), input.shape().end());
  const bool columns = shape.size() == 2 && (shape[1] == 1 || shape[1] == 2);
  if (input.datatype() != "BYTES" || (shape.size() != 1 && !columns)) {
    return WrongTexts(model,
                      "expected BYTES of shape [batch] or [batch, 1], or of pairs [batch, 2], "
                      "got " +
                          Quoted(input.datatype()) + " of shape " + ToString(shape));
  }
  if (input.parameters().contains("shared_memory_region")) {
    return absl::UnimplementedError("shared memory is not supported for input 'text'");
  }
  return shape[0];
}

bool ArePairs(const inference::ModelInferRequest& message) {
  const auto& shape = message.inputs(0).shape();
  return shape.size() == 2 && shape[1] == 2;
}

absl::StatusOr<TextViews> TextsOf(const inference::ModelInferRequest& message,
                                  const std::string& model) {
  const int64_t expected = message.inputs(0).shape(0) * (ArePairs(message) ? 2 : 1);
  absl::StatusOr<TextViews> texts = TextViews();
  const auto& contents = message.inputs(0).contents().bytes_contents();
  if (message.raw_input_contents_size() == 1) {
    if (!contents.empty()) return WrongTexts(model, "both contents and raw_input_contents");
    texts = TextsIn(message.raw_input_contents(0), static_cast<size_t>(expected));
    if (!texts.ok()) return WrongTexts(model, std::string(texts.status().message()));
  } else {
    texts->assign(contents.begin(), contents.end());
  }
  if (std::cmp_not_equal(texts->size(), expected)) {
    return WrongTexts(model, std::to_string(texts->size()) + " texts, expected " +
                                 std::to_string(expected) + " by its shape");
  }
  return texts;
}

}  // namespace linserve
