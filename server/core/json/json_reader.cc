#include "core/json/json_reader.h"

#include <algorithm>
#include <utility>

#include "core/json/json_string.h"

namespace linserve {
namespace {

// The recursion of whoever reads is as deep as the text's nesting.
constexpr int kDeepestArrays = 32;
constexpr size_t kStep = 64 << 10;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

bool IsSpace(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

JsonReader::JsonReader(std::string_view text, GoOn go_on, std::string_view name)
    : text_(text),
      go_on_(std::move(go_on)),
      name_(name),
      at_(text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0),
      next_step_(kStep) {}

JsonReader::Kind JsonReader::Next() {
  SkipSpace();
  if (at_ == text_.size()) return Kind::kNone;
  switch (text_[at_]) {
    case '{':
      return Kind::kObject;
    case '[':
      return Kind::kArray;
    case '"':
      return Kind::kString;
    case 't':
    case 'f':
      return Kind::kBool;
    case 'n':
      return Kind::kNull;
    default:
      return text_[at_] == '-' || IsDigit(text_[at_]) ? Kind::kNumber : Kind::kNone;
  }
}

JsonReader::Kind JsonReader::NextInside() {
  SkipSpace();
  const size_t here = at_;
  const Kind first = TakeHere('[') ? Next() : Kind::kNone;
  at_ = here;
  return first;
}

size_t JsonReader::ElementsAhead() const {
  const std::string_view ahead = text_.substr(at_, text_.find(']', at_) - at_);
  return 1 + static_cast<size_t>(std::count(ahead.begin(), ahead.end(), ','));
}

absl::Status JsonReader::Object(const std::function<absl::Status(const std::string& key)>& member) {
  if (absl::Status entered = Enter('{'); !entered.ok()) return entered;
  if (Ahead('}')) return Leave('}');
  do {
    const auto key = String();
    if (!key.ok()) return key.status();
    absl::Status status = Take(':') ? Step() : SyntaxError();
    if (status.ok()) status = member(*key);
    if (!status.ok()) return status;
  } while (Take(','));
  return Leave('}');
}

absl::Status JsonReader::Array(const std::function<absl::Status()>& element) {
  if (absl::Status entered = Enter('['); !entered.ok()) return entered;
  if (Ahead(']')) return Leave(']');
  do {
    absl::Status status = Step();
    if (status.ok()) status = element();
    if (!status.ok()) return status;
  } while (Take(','));
  return Leave(']');
}

absl::StatusOr<std::string> JsonReader::String() {
  if (!Take('"')) return SyntaxError();
  const size_t begin = at_;
  while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? size_t{2} : size_t{1};
  const std::string_view raw = text_.substr(begin, at_ - begin);
  at_ = std::min(at_, text_.size());
  if (!TakeHere('"')) return SyntaxError();
  return Unescaped(raw, begin, name_);
}

absl::StatusOr<std::string_view> JsonReader::Number() {
  SkipSpace();
  const size_t begin = at_;
  TakeHere('-');
  bool whole = TakeHere('0') || TakeDigits();
  if (whole && TakeHere('.')) whole = TakeDigits();
  if (whole && (TakeHere('e') || TakeHere('E'))) {
    if (!TakeHere('-')) TakeHere('+');
    whole = TakeDigits();
  }
  if (!whole) return SyntaxError();
  return text_.substr(begin, at_ - begin);
}

absl::StatusOr<bool> JsonReader::Bool() {
  if (TakeWord("true")) return true;
  if (TakeWord("false")) return false;
  return SyntaxError();
}

absl::StatusOr<std::string_view> JsonReader::Skip() {
  SkipSpace();
  const size_t begin = at_;
  if (absl::Status status = SkipValue(); !status.ok()) return status;
  return text_.substr(begin, at_ - begin);
}

absl::Status JsonReader::SkipValue() {
  switch (Next()) {
    case Kind::kObject:
      return Object([this](const std::string& /*key*/) { return SkipValue(); });
    case Kind::kArray:
      return Array([this] { return SkipValue(); });
    case Kind::kString:
      return String().status();
    case Kind::kNumber:
      return Number().status();
    case Kind::kBool:
      return Bool().status();
    case Kind::kNull:
      return TakeWord("null") ? absl::OkStatus() : SyntaxError();
    case Kind::kNone:
      break;
  }
  return SyntaxError();
}

absl::Status JsonReader::End() {
  SkipSpace();
  return at_ == text_.size() ? absl::OkStatus() : SyntaxError();
}

absl::Status JsonReader::Expect(Kind kind, const std::string& otherwise) {
  return Next() == kind ? absl::OkStatus() : Unexpected(otherwise);
}

absl::Status JsonReader::Unexpected(const std::string& what) {
  return Next() == Kind::kNone ? SyntaxError() : absl::InvalidArgumentError(what);
}

absl::Status JsonReader::Enter(char open) {
  if (!Take(open)) return SyntaxError();
  if (++depth_ <= kDeepestArrays) return absl::OkStatus();
  return absl::InvalidArgumentError(std::string(name_) + " is nested more than " +
                                    std::to_string(kDeepestArrays) + " deep");
}

absl::Status JsonReader::Leave(char close) {
  --depth_;
  return Take(close) ? absl::OkStatus() : SyntaxError();
}

absl::Status JsonReader::Step() {
  if (at_ < next_step_) return absl::OkStatus();
  next_step_ = at_ + kStep;
  return go_on_();
}

absl::Status JsonReader::SyntaxError() const {
  return absl::InvalidArgumentError(std::string(name_) + " is not JSON: a syntax error at byte " +
                                    std::to_string(at_ + 1));
}

void JsonReader::SkipSpace() {
  while (at_ < text_.size() && IsSpace(text_[at_])) ++at_;
}

bool JsonReader::Ahead(char expected) {
  SkipSpace();
  return at_ < text_.size() && text_[at_] == expected;
}

bool JsonReader::Take(char expected) {
  SkipSpace();
  return TakeHere(expected);
}

bool JsonReader::TakeHere(char expected) {
  const bool there = at_ < text_.size() && text_[at_] == expected;
  if (there) ++at_;
  return there;
}

bool JsonReader::TakeWord(std::string_view word) {
  SkipSpace();
  const bool there = text_.substr(at_).starts_with(word);
  if (there) at_ += word.size();
  return there;
}

bool JsonReader::TakeDigits() {
  const size_t begin = at_;
  while (at_ < text_.size() && IsDigit(text_[at_])) ++at_;
  return at_ > begin;
}

}  // namespace linserve
