#include "text/huggingface/patterns/pattern.h"

#include <unicode/regex.h>
#include <unicode/unistr.h>
#include <unicode/utf16.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "core/strings/quote.h"
#include "core/threads/thread_time.h"
#include "text/huggingface/characters/characters.h"
#include "text/huggingface/patterns/regex_syntax.h"

namespace linserve {
namespace {

constexpr size_t kLongest = 4096;  // bytes of a pattern; o200k's has some 350

// Finding all matches in a text may take so much time of the thread, a hundred times what usual
// expressions need for the longest text that is searched at once, and so many bytes to go back to.
constexpr std::chrono::milliseconds kMostTime(250);
constexpr int32_t kMostStack = 8 << 20;

// Ends a search that takes too long, whether many places match or one is tried in many ways.
class SearchTime {
 public:
  // These are called by ICU now and then; it stops where they return false.
  static UBool U_CALLCONV GoesOn(const void* self, int32_t /*steps*/) {
    return static_cast<const SearchTime*>(self)->IsLeft() ? 1 : 0;
  }
  static UBool U_CALLCONV GoesOnAt(const void* self, int64_t place) {
    // A look at the clock costs more than trying a place.
    constexpr int64_t kSeldom = 64;
    return place % kSeldom != 0 || static_cast<const SearchTime*>(self)->IsLeft() ? 1 : 0;
  }

 private:
  bool IsLeft() const { return ThreadTime() - begin_ < kMostTime; }

  const std::chrono::nanoseconds begin_ = ThreadTime();
};

struct Known {
  std::string_view expression;
  WordPattern words;
};
constexpr Known kKnown[] = {
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
     WordPattern::kGpt2},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     WordPattern::kCl100k},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     WordPattern::kQwen},
};

void FindLiteral(std::string_view text, std::string_view wanted, std::vector<ByteRange>& matches) {
  if (wanted.empty()) return;
  for (size_t at = text.find(wanted); at != std::string_view::npos;
       at = text.find(wanted, at + wanted.size())) {
    matches.push_back({at, at + wanted.size()});
  }
}

}  // namespace

// Holds a regular expression as ICU has it.
class Pattern::Expression {
 public:
  static absl::StatusOr<std::shared_ptr<const Expression>> Make(const std::string& text) {
    auto rewritten = ForIcu(text);
    if (!rewritten.ok()) return rewritten.status();
    auto made = std::make_shared<Expression>();
    UErrorCode error = U_ZERO_ERROR;
    UParseError place{};
    // These are the flags by which a line ends where it does in the package.
    constexpr uint32_t kFlags = UREGEX_MULTILINE | UREGEX_UNIX_LINES;
    made->compiled_.reset(
        icu::RegexPattern::compile(icu::UnicodeString::fromUTF8(*rewritten), kFlags, place, error));
    if (U_SUCCESS(error)) return std::shared_ptr<const Expression>(std::move(made));
    return absl::InvalidArgumentError("the regular expression " + Quoted(text) +
                                      " is none for ICU: " + u_errorName(error) +
                                      " at its character " + std::to_string(place.offset + 1));
  }

  absl::Status Find(std::string_view text, std::vector<ByteRange>& matches) const {
    UErrorCode error = U_ZERO_ERROR;
    const auto wide = icu::UnicodeString::fromUTF8(
        icu::StringPiece(text.data(), static_cast<int32_t>(text.size())));
    const std::unique_ptr<icu::RegexMatcher> matcher(compiled_->matcher(wide, error));
    if (U_FAILURE(error)) return Failure(error);
    const SearchTime time;
    matcher->setMatchCallback(&SearchTime::GoesOn, &time, error);
    matcher->setFindProgressCallback(&SearchTime::GoesOnAt, &time, error);
    matcher->setStackLimit(kMostStack, error);
    int32_t units = 0;  // of UTF-16 that are `bytes` of the text
    size_t bytes = 0;
    const auto bytes_at = [&](int32_t wanted) {
      while (units < wanted) {
        const Character next = CharacterAt(text, bytes);
        units += U16_LENGTH(next.code);
        bytes += next.bytes;
      }
      return bytes;
    };
    std::optional<int32_t> last_end;
    while (U_SUCCESS(error) && matcher->find(error)) {
      const int32_t begin = matcher->start(error);
      const int32_t end = matcher->end(error);
      // What matches nothing right behind a match is none.
      if (begin == end && last_end == end) continue;
      last_end = end;
      const size_t begin_byte = bytes_at(begin);
      matches.push_back({begin_byte, bytes_at(end)});
    }
    return U_SUCCESS(error) ? absl::OkStatus() : Failure(error);
  }

 private:
  static absl::Status Failure(UErrorCode error) {
    return absl::InvalidArgumentError(
        "the tokenizer's regular expression takes too long for the text (" +
        std::string(u_errorName(error)) + "); shorten the text");
  }

  std::unique_ptr<const icu::RegexPattern> compiled_;
};

absl::StatusOr<Pattern> Pattern::FromJson(const nlohmann::json& document) {
  Pattern pattern;
  const bool literal = document.is_object() && document.size() == 1 && document.contains("String");
  const bool regex = document.is_object() && document.size() == 1 && document.contains("Regex");
  if ((!literal && !regex) || !document.front().is_string()) {
    return absl::InvalidArgumentError(
        R"(its pattern is neither {"String": ...} nor {"Regex": ...})");
  }
  pattern.text_ = document.front().get<std::string>();
  if (pattern.text_.size() > kLongest) {
    return absl::InvalidArgumentError("its pattern has " + std::to_string(pattern.text_.size()) +
                                      " bytes, expected at most " + std::to_string(kLongest));
  }
  if (literal) return pattern;
  for (const Known& known : kKnown) {
    if (known.expression == pattern.text_) return OfWords(known.words);
  }
  auto expression = Expression::Make(pattern.text_);
  if (!expression.ok()) return expression.status();
  pattern.expression_ = *std::move(expression);
  return pattern;
}

Pattern Pattern::OfWords(WordPattern words) {
  Pattern pattern;
  pattern.is_words_ = true;
  pattern.words_ = words;
  return pattern;
}

absl::Status Pattern::Find(std::string_view text, std::vector<ByteRange>& matches) const {
  if (expression_ != nullptr) return expression_->Find(text, matches);
  if (!is_words_) {
    FindLiteral(text, text_, matches);
    return absl::OkStatus();
  }
  for (size_t at = 0; at < text.size();) {
    const size_t end = WordEnd(words_, text, at);
    matches.push_back({at, end});
    at = end;
  }
  return absl::OkStatus();
}

bool Pattern::finds_spaces() const {
  return expression_ != nullptr && (text_ == "\\s+" || text_ == "\\s");
}

}  // namespace linserve
