#include "core/files/npy_header.h"

#include <array>
#include <charconv>
#include <optional>
#include <set>

#include "core/strings/quote.h"

namespace linserve {
namespace {

struct Descr {
  std::string_view text;
  DType dtype;
};

// A one-byte type has no byte order, which NumPy writes as '|'.
constexpr std::array<Descr, 9> kDescrs = {{
    {"|b1", DType::kBool},
    {"|u1", DType::kU8},
    {"|i1", DType::kI8},
    {"<i2", DType::kI16},
    {"<i4", DType::kI32},
    {"<i8", DType::kI64},
    {"<f2", DType::kF16},
    {"<f4", DType::kF32},
    {"<f8", DType::kF64},
}};

std::optional<DType> DTypeOf(std::string_view descr) {
  for (const Descr& known : kDescrs) {
    if (known.text == descr) return known.dtype;
  }
  return std::nullopt;
}

// Reads tokens of the dictionary from front to back.
class NpyHeaderReader {
 public:
  explicit NpyHeaderReader(std::string_view text) : text_(text) {}

  absl::StatusOr<NpyHeader> Read() {
    if (!Take('{')) return Unexpected("'{'");
    while (!Take('}')) {
      if (absl::Status status = ReadMember(); !status.ok()) return status;
      if (!Take(',') && Peek() != '}') return Unexpected("',' or '}'");
    }
    SkipSpace();
    if (at_ != text_.size()) return Unexpected("the end of the header");
    if (keys_.size() != 3) {
      return absl::InvalidArgumentError(
          "a key of the header is missing, expected descr, fortran_order and shape");
    }
    return header_;
  }

 private:
  absl::Status ReadMember() {
    const std::optional<std::string_view> key = TakeText();
    if (!key || !Take(':')) return Unexpected("a key and ':'");
    if (!keys_.insert(*key).second) {
      return absl::InvalidArgumentError("the key " + Quoted(*key) +
                                        " stands there twice, expected once");
    }
    if (*key == "descr") return ReadDescr();
    if (*key == "fortran_order") return ReadOrder();
    if (*key == "shape") return ReadShape();
    return absl::InvalidArgumentError("unknown key " + Quoted(*key) +
                                      ", expected descr, fortran_order and shape");
  }

  absl::Status ReadDescr() {
    const std::optional<std::string_view> text = TakeText();
    if (!text) return Unexpected("descr to be one type in quotes, no structured array");
    const std::optional<DType> dtype = DTypeOf(*text);
    if (!dtype) {
      return absl::InvalidArgumentError(
          "descr is " + Quoted(*text) +
          ", expected one of |b1 |u1 |i1 <i2 <i4 <i8 <f2 <f4 <f8 (little-endian, no objects)");
    }
    header_.dtype = *dtype;
    return absl::OkStatus();
  }

  absl::Status ReadOrder() {
    if (TakeWord("False")) return absl::OkStatus();
    if (!TakeWord("True")) return Unexpected("fortran_order to be False");
    return absl::InvalidArgumentError("fortran_order is True, expected False (C order)");
  }

  absl::Status ReadShape() {
    if (!Take('(')) return Unexpected("shape to be a tuple '('");
    bool separated = true;
    while (!Take(')')) {
      int64_t size = 0;
      SkipSpace();
      const char* begin = text_.data() + at_;
      const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), size);
      if (!separated || error != std::errc() || size < 0) return Unexpected("a size of the shape");
      if (header_.shape.size() == kMostNpyAxes) return Unexpected("at most 64 axes");
      header_.shape.push_back(size);
      at_ += static_cast<size_t>(end - begin);
      separated = Take(',');
    }
    // Python reads "(3)" as a number, not as a tuple.
    if (header_.shape.size() == 1 && !separated) return Unexpected("',' in a tuple of one size");
    return absl::OkStatus();
  }

  void SkipSpace() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }

  char Peek() {
    SkipSpace();
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  bool Take(char expected) {
    const bool found = Peek() == expected;
    if (found) ++at_;
    return found;
  }

  bool TakeWord(std::string_view word) {
    SkipSpace();
    const bool found = text_.substr(at_, word.size()) == word;
    if (found) at_ += word.size();
    return found;
  }

  std::optional<std::string_view> TakeText() {
    const char quote = Peek();
    if (quote != '\'' && quote != '"') return std::nullopt;
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view content = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return content;
  }

  absl::Status Unexpected(const std::string& expected) {
    SkipSpace();
    const std::string_view rest = text_.substr(at_);
    return absl::InvalidArgumentError("the header holds " + Quoted(rest) + " at its byte " +
                                      std::to_string(at_) + ", expected " + expected);
  }

  std::string_view text_;
  size_t at_ = 0;
  NpyHeader header_;
  std::set<std::string_view> keys_;
};

}  // namespace

absl::StatusOr<NpyHeader> ParseNpyHeader(std::string_view text) {
  return NpyHeaderReader(text).Read();
}

std::string NpyHeaderText(const NpyHeader& header) {
  std::string_view descr;
  for (const Descr& known : kDescrs) {
    if (known.dtype == header.dtype) descr = known.text;
  }
  std::string shape;
  for (int64_t size : header.shape) shape += (shape.empty() ? "" : ", ") + std::to_string(size);
  if (header.shape.size() == 1) shape += ',';
  return "{'descr': '" + std::string(descr) + "', 'fortran_order': False, 'shape': (" + shape +
         "), }";
}

}  // namespace linserve
