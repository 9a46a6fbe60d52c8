#include "rest/json/tensor_json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <functional>
#include <optional>
#include <type_traits>

#include "core/json/json_number.h"
#include "core/sequence/content.h"
#include "core/strings/quote.h"
#include "core/tensor/text_bytes.h"

namespace linserve {
namespace {

using Kind = JsonReader::Kind;

// Reads the elements of nested arrays, or the only one.
absl::Status Flatten(JsonReader& reader, const std::function<absl::Status()>& read) {
  if (reader.Next() != Kind::kArray) return read();
  return reader.Array([&] { return Flatten(reader, read); });
}

template <typename T>
std::optional<T> ElementOf(std::string_view text) {
  if constexpr (std::is_same_v<T, bool>) {
    return text == "true" || text == "false" ? std::optional(text == "true") : std::nullopt;
  } else if constexpr (std::is_floating_point_v<T>) {
    const auto value = DoubleOf(text);
    return value ? std::optional(static_cast<T>(*value)) : std::nullopt;
  } else {
    return IntegerOf<T>(text);
  }
}

// Says of what is read where it belongs, and whether to read on.
struct Source {
  std::string_view data;
  const JsonReader::GoOn& go_on;
  const std::string& where;

  size_t MostElements() const {
    return 1 + static_cast<size_t>(std::count(data.begin(), data.end(), ','));
  }
};

template <typename T>
absl::Status ReadNumbers(const Source& source, std::string& raw) {
  JsonReader reader(source.data, source.go_on);
  raw.reserve(source.MostElements() * sizeof(T));
  return Flatten(reader, [&]() -> absl::Status {
    const auto text = reader.Skip();
    if (!text.ok()) return text.status();
    const auto value = ElementOf<T>(*text);
    if (!value) {
      return absl::InvalidArgumentError(source.where + ": " + Quoted(*text) +
                                        " is no such element");
    }
    raw.append(reinterpret_cast<const char*>(&*value), sizeof(T));
    return absl::OkStatus();
  });
}

absl::Status ReadTexts(const Source& source, std::string& raw) {
  JsonReader reader(source.data, source.go_on);
  raw.reserve(source.data.size() + source.MostElements());  // a length takes more than two quotes
  return Flatten(reader, [&]() -> absl::Status {
    if (reader.Next() != Kind::kString) {
      const auto found = reader.Skip();
      if (!found.ok()) return found.status();
      return absl::InvalidArgumentError(source.where + ": " + Quoted(*found) + " is no text");
    }
    const auto text = reader.String();
    if (text.ok()) AppendText(*text, raw);
    return text.status();
  });
}

template <typename T>
void AppendElement(T value, std::string& text) {
  std::array<char, 32> digits{};
  const char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  const std::string_view written(digits.data(), static_cast<size_t>(end - digits.data()));
  text += written;
  // Readers that tell floats from integers by their point find one.
  const bool whole = written.find_first_of(".e") == std::string_view::npos;
  if (std::is_floating_point_v<T> && whole) text += ".0";
}

template <typename T, typename Number = std::identity>
void AppendAll(const Tensor& tensor, std::string& text, Number number = {}) {
  const T* values = tensor.data<T>();
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    if (i > 0) text += ',';
    AppendElement(number(values[i]), text);
  }
}

}  // namespace

absl::Status ReadElements(const std::string& datatype, std::string_view data,
                          const JsonReader::GoOn& go_on, const std::string& where,
                          std::string& raw) {
  const Source source{data, go_on, where};
  if (datatype == "BOOL") return ReadNumbers<bool>(source, raw);
  if (datatype == "INT8") return ReadNumbers<int8_t>(source, raw);
  if (datatype == "INT16") return ReadNumbers<int16_t>(source, raw);
  if (datatype == "INT32") return ReadNumbers<int32_t>(source, raw);
  if (datatype == "INT64") return ReadNumbers<int64_t>(source, raw);
  if (datatype == "UINT8") return ReadNumbers<uint8_t>(source, raw);
  if (datatype == "UINT16") return ReadNumbers<uint16_t>(source, raw);
  if (datatype == "UINT32") return ReadNumbers<uint32_t>(source, raw);
  if (datatype == "UINT64") return ReadNumbers<uint64_t>(source, raw);
  if (datatype == "FP32") return ReadNumbers<float>(source, raw);
  if (datatype == "FP64") return ReadNumbers<double>(source, raw);
  if (datatype == "BYTES") return ReadTexts(source, raw);
  return absl::InvalidArgumentError(where + ": " + datatype +
                                    " elements cannot stand in JSON; send them as binary data");
}

bool HasElements(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16 ||
         dtype == DType::kI8 || dtype == DType::kI64;
}

void AppendFloat(float value, std::string& text) { AppendElement(value, text); }

absl::Status AppendElements(const Tensor& tensor, std::string& text) {
  const auto fault = IsFloat(tensor.dtype()) ? FindNonfinite(tensor) : std::nullopt;
  if (fault) {
    return absl::OutOfRangeError("the result holds " + fault->value + " at position " +
                                 ToString(fault->position) +
                                 ", which JSON has no form for; ask for it as bytes");
  }
  text += '[';
  if (tensor.dtype() == DType::kF32) AppendAll<float>(tensor, text);
  if (tensor.dtype() == DType::kI8) AppendAll<int8_t>(tensor, text);
  if (tensor.dtype() == DType::kI64) AppendAll<int64_t>(tensor, text);
  if (tensor.dtype() == DType::kF16) AppendAll<uint16_t>(tensor, text, HalfToFloat);
  if (tensor.dtype() == DType::kBF16) AppendAll<uint16_t>(tensor, text, BFloat16ToFloat);
  text += ']';
  return absl::OkStatus();
}

}  // namespace linserve
