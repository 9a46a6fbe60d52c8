#include "rpc/oip/inference_tensors.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

#include "core/strings/quote.h"

namespace linserve {
namespace {

using Input = inference::ModelInferRequest::InferInputTensor;
using Contents = inference::InferTensorContents;

// Says how a datatype lies in raw contents, and which typed field holds its elements.
struct Form {
  std::string_view datatype;
  DType raw;  // a type of that size
  enum Field : uint8_t { kNone, kBool, kInt, kInt64, kUint, kUint64, kFp32, kFp64 } field;
  bool widened = false;  // no DType has the datatype: it becomes I64
};

constexpr std::array<Form, 13> kForms = {{{"BOOL", DType::kBool, Form::kBool},
                                          {"UINT8", DType::kU8, Form::kUint},
                                          {"INT8", DType::kI8, Form::kInt},
                                          {"INT16", DType::kI16, Form::kInt},
                                          {"INT32", DType::kI32, Form::kInt},
                                          {"INT64", DType::kI64, Form::kInt64},
                                          {"FP16", DType::kF16, Form::kNone},
                                          {"BF16", DType::kBF16, Form::kNone},
                                          {"FP32", DType::kF32, Form::kFp32},
                                          {"FP64", DType::kF64, Form::kFp64},
                                          {"UINT16", DType::kI16, Form::kUint, true},
                                          {"UINT32", DType::kI32, Form::kUint, true},
                                          {"UINT64", DType::kI64, Form::kUint64, true}}};

const Form* FormOf(std::string_view datatype) {
  const auto* form = std::find_if(kForms.begin(), kForms.end(), [&](const Form& candidate) {
    return candidate.datatype == datatype;
  });
  return form == kForms.end() ? nullptr : form;
}

std::string KnownDatatypes() {
  std::string known;
  for (const Form& form : kForms) {
    known += (known.empty() ? "" : ", ") + std::string(form.datatype);
  }
  return known;
}

// Holds an input, and what messages about it begin and end with.
struct Source {
  const Input& input;
  const Form& form;
  Shape shape;
  const std::string& model;

  std::string Where() const {
    return "for input " + Quoted(input.name()) + " for model " + Quoted(model);
  }
  // Says that the size is wrong. `expected` is nullopt for a shape that cannot be.
  absl::Status WrongSize(std::optional<int64_t> expected, size_t got, const char* unit) const {
    return absl::InvalidArgumentError(
        "input " + std::string(unit) + " size mismatch " + Where() + ". Expected " +
        (expected ? std::to_string(*expected)
                  : "an impossible number for shape " + ToString(shape)) +
        ", got " + std::to_string(got));
  }
  absl::Status OutOfRange() const {
    return absl::InvalidArgumentError("an element is out of the range of " + input.datatype() +
                                      " " + Where());
  }
  absl::Status TooLarge() const {
    return absl::InvalidArgumentError("a " + input.datatype() + " element does not fit INT64 " +
                                      Where());
  }
};

// Converts elements of a type that no DType has to I64.
template <typename T, typename Elements>
absl::StatusOr<Tensor> Widened(const Source& source, const Elements& elements) {
  auto [tensor, bytes] = Tensor::Allocate(DType::kI64, source.shape);
  auto* values = reinterpret_cast<int64_t*>(bytes);
  for (const T element : elements) {
    if (element > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return source.TooLarge();
    }
    *values++ = static_cast<int64_t>(element);
  }
  return tensor;
}

// Returns the bytes, which `owner` keeps alive, as U8.
Tensor BytesOf(const std::string& bytes, const std::shared_ptr<const void>& owner) {
  return {DType::kU8, {std::ssize(bytes)}, bytes.data(), owner};
}

template <typename T>
std::vector<T> Unpacked(const Tensor& raw) {
  std::vector<T> elements(raw.byte_size() / sizeof(T));
  raw.CopyTo(reinterpret_cast<std::byte*>(elements.data()));
  return elements;
}

absl::StatusOr<Tensor> FromRaw(const Source& source, const Tensor& raw) {
  const auto expected = CheckedByteSize(source.form.raw, source.shape);
  if (!expected || std::cmp_not_equal(*expected, raw.byte_size())) {
    return source.WrongSize(expected, raw.byte_size(), "byte");
  }
  if (!source.form.widened) return raw.As(source.form.raw, source.shape);
  if (source.form.raw == DType::kI16) return Widened<uint16_t>(source, Unpacked<uint16_t>(raw));
  if (source.form.raw == DType::kI32) return Widened<uint32_t>(source, Unpacked<uint32_t>(raw));
  return Widened<uint64_t>(source, Unpacked<uint64_t>(raw));
}

// Copies the elements of a typed field, which may be of a wider type than T.
template <typename T, typename Elements>
absl::StatusOr<Tensor> FromTyped(const Source& source, const Elements& elements) {
  const auto expected = CheckedElementCount(source.shape);
  const auto count = static_cast<size_t>(elements.size());
  if (!expected || std::cmp_not_equal(*expected, count)) {
    return source.WrongSize(expected, count, "element");
  }
  if constexpr (std::is_unsigned_v<T> && !std::is_same_v<T, bool>) {
    if (source.form.raw == DType::kI16 && source.form.widened &&
        std::any_of(elements.begin(), elements.end(), [](T one) { return one > UINT16_MAX; })) {
      return source.OutOfRange();
    }
    if (source.form.widened) return Widened<T>(source, elements);
  }
  auto [tensor, bytes] = Tensor::Allocate(source.form.raw, source.shape);
  auto* values = reinterpret_cast<T*>(bytes);
  for (const auto element : elements) {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      if (!std::in_range<T>(element)) return source.OutOfRange();
    }
    *values++ = static_cast<T>(element);
  }
  return tensor;
}

absl::StatusOr<Tensor> FromTyped(const Source& source) {
  const Contents& contents = source.input.contents();
  switch (source.form.field) {
    case Form::kBool:
      return FromTyped<bool>(source, contents.bool_contents());
    case Form::kInt:
      if (source.form.raw == DType::kI8) return FromTyped<int8_t>(source, contents.int_contents());
      if (source.form.raw == DType::kI16)
        return FromTyped<int16_t>(source, contents.int_contents());
      return FromTyped<int32_t>(source, contents.int_contents());
    case Form::kInt64:
      return FromTyped<int64_t>(source, contents.int64_contents());
    case Form::kUint:
      if (source.form.raw == DType::kU8)
        return FromTyped<uint8_t>(source, contents.uint_contents());
      return FromTyped<uint32_t>(source, contents.uint_contents());
    case Form::kUint64:
      return FromTyped<uint64_t>(source, contents.uint64_contents());
    case Form::kFp32:
      return FromTyped<float>(source, contents.fp32_contents());
    case Form::kFp64:
      return FromTyped<double>(source, contents.fp64_contents());
    case Form::kNone:
      break;
  }
  return absl::InvalidArgumentError("datatype " + source.input.datatype() +
                                    " must be given by raw_input_contents " + source.Where());
}

// Converts an input. `raw` is nullopt where there are no raw contents.
absl::StatusOr<Tensor> ToTensor(const Input& input, const std::optional<Tensor>& raw,
                                const std::string& model) {
  const Form* form = FormOf(input.datatype());
  if (form == nullptr) {
    return absl::InvalidArgumentError("inference input " + Quoted(input.name()) + " data-type is " +
                                      Quoted(input.datatype()) + ", but model " + Quoted(model) +
                                      " takes " + KnownDatatypes());
  }
  const Source source{input, *form, Shape(input.shape().begin(), input.shape().end()), model};
  if (input.parameters().contains("shared_memory_region")) {
    return absl::UnimplementedError("shared memory is not supported " + source.Where() +
                                    "; send raw_input_contents");
  }
  if (!raw && !input.has_contents()) {
    return absl::InvalidArgumentError("unable to find data for input tensor " +
                                      Quoted(input.name()) + " for model " + Quoted(model) +
                                      " in request.");
  }
  if (!raw) return FromTyped(source);
  if (input.has_contents()) {
    return absl::InvalidArgumentError(
        "contents field must not be specified when using raw_input_contents for " +
        Quoted(input.name()) + " for model " + Quoted(model));
  }
  return FromRaw(source, *raw);
}

}  // namespace

std::string_view Datatype(DType dtype) {
  const auto* form = std::find_if(kForms.begin(), kForms.end(),
                                  [&](const Form& candidate) { return candidate.raw == dtype; });
  return form->datatype;
}

absl::Status CheckDatatype(const std::string& datatype) {
  if (datatype == "BYTES" || FormOf(datatype) != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError("unknown datatype " + Quoted(datatype) + ", expected " +
                                    KnownDatatypes() + ", or BYTES for texts");
}

DType AnnouncedType(InputKind kind) {
  switch (kind) {
    case InputKind::kFloat:
    case InputKind::kAttentionMask:
      return DType::kF32;
    case InputKind::kToken:
      return DType::kI64;
    case InputKind::kMask:
      return DType::kBool;
  }
  return DType::kF32;
}

int64_t ConvertedBytes(const inference::ModelInferRequest& message) {
  int64_t bytes = 0;
  const int inputs = std::min(message.inputs_size(), message.raw_input_contents_size());
  for (int i = 0; i < inputs; ++i) {
    const Form* form = FormOf(message.inputs(i).datatype());
    if (form == nullptr || !form->widened) continue;
    const std::string& raw = message.raw_input_contents(i);
    // They are copied, and then an element takes eight bytes.
    bytes += std::ssize(raw) + 8 * std::ssize(raw) / static_cast<int64_t>(ByteSize(form->raw));
  }
  return bytes;
}

absl::StatusOr<TensorMap> ToTensors(const inference::ModelInferRequest& message,
                                    const std::string& model,
                                    const std::shared_ptr<const void>& owner) {
  const bool raw = message.raw_input_contents_size() > 0;
  if (raw && message.raw_input_contents_size() != message.inputs_size()) {
    return absl::InvalidArgumentError("expected as many raw_input_contents as inputs for model " +
                                      Quoted(model) + ", got " +
                                      std::to_string(message.raw_input_contents_size()) + " for " +
                                      std::to_string(message.inputs_size()) + " inputs");
  }
  TensorMap tensors;
  for (int i = 0; i < message.inputs_size(); ++i) {
    const Input& input = message.inputs(i);
    std::optional<Tensor> bytes;
    if (raw) bytes = BytesOf(message.raw_input_contents(i), owner);
    auto tensor = ToTensor(input, bytes, model);
    if (!tensor.ok()) return tensor.status();
    if (!tensors.try_emplace(input.name(), *std::move(tensor)).second) {
      return absl::InvalidArgumentError("input " + Quoted(input.name()) +
                                        " is given more than once for model " + Quoted(model));
    }
  }
  return tensors;
}

void AddOutput(const std::string& name, const Tensor& tensor,
               inference::ModelInferResponse& message) {
  inference::ModelInferResponse::InferOutputTensor& output = *message.add_outputs();
  output.set_name(name);
  output.set_datatype(std::string(Datatype(tensor.dtype())));
  output.mutable_shape()->Assign(tensor.shape().begin(), tensor.shape().end());
}

}  // namespace linserve
