#include "text/huggingface/patterns/regex_syntax.h"

#include "absl/status/status.h"
#include "core/strings/quote.h"
#include "text/huggingface/characters/characters.h"

namespace linserve {
namespace {

// What \w is in the one is not in the other. Some fractions and raised digits are part of it there.
constexpr std::string_view kWordSet =
    R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u00B2\u00B3\u00B9\u00BC-\u00BE)";

// Walks over an expression and rewrites it.
class Rewriting {
 public:
  explicit Rewriting(std::string_view expression) : rest_(expression) {}

  absl::StatusOr<std::string> Run() {
    while (!rest_.empty()) {
      if (absl::Status status = Next(); !status.ok()) return status;
    }
    return std::move(result_);
  }

 private:
  absl::Status Next() {
    if (rest_[0] == '\\') return Escape();
    if (sets_ > 0) return InSet();
    if (rest_.starts_with("(?")) return Group();
    if (rest_.starts_with("}+")) return Unknown("}+");
    if (rest_[0] == '[') return OpenSet();
    Copy(1);
    return absl::OkStatus();
  }

  absl::Status InSet() {
    if (rest_[0] == '[') return OpenSet();
    if (rest_.starts_with("--")) return Unknown("--");
    if (rest_[0] == ']') --sets_;
    Copy(1);
    return absl::OkStatus();
  }

  absl::Status OpenSet() {
    if (rest_.starts_with("[:")) return Unknown("[:");
    ++sets_;
    Copy(rest_.starts_with("[^") ? 2 : 1);
    // A bracket that stands first is one of the characters in the one, and not in the other.
    if (rest_.starts_with("]")) return Unknown("[]");
    return absl::OkStatus();
  }

  // Lets those groups pass that mean one thing: without a name, of any case, looking around.
  absl::Status Group() {
    for (const std::string_view known : {"(?:", "(?i:", "(?=", "(?!", "(?<=", "(?<!", "(?>"}) {
      if (!rest_.starts_with(known)) continue;
      Copy(known.size());
      return absl::OkStatus();
    }
    // In the middle it would reach to the end of the group in the one, of the branch in the other.
    if (rest_.starts_with("(?i)") && result_.empty()) {
      Copy(4);
      return absl::OkStatus();
    }
    return Unknown(rest_.substr(0, 3));
  }

  absl::Status Escape() {
    if (rest_.size() < 2) return Unknown("\\");
    const char escaped = rest_[1];
    if (escaped == 'w' || escaped == 'W') {
      rest_.remove_prefix(2);
      return Set(std::string(kWordSet) + NewCharacters(kWord), escaped == 'W');
    }
    if (escaped == 'd' || escaped == 'D') {
      rest_.remove_prefix(2);
      return Set("\\p{Nd}" + NewCharacters(kNumber), escaped == 'D');
    }
    if (escaped == 'p' || escaped == 'P') return Property(escaped == 'P');
    const bool letter = (escaped >= 'a' && escaped <= 'z') || (escaped >= 'A' && escaped <= 'Z');
    const bool digit = escaped >= '0' && escaped <= '9';
    constexpr std::string_view kShared = "sSnrtfvaexuAz";
    if (digit || (letter && kShared.find(escaped) == std::string_view::npos)) {
      return Unknown(rest_.substr(0, 2));
    }
    if (escaped == 'x' && !rest_.substr(2).starts_with("{")) return Unknown("\\x without braces");
    // In ICU it is a vertical tabulator or its like, in Oniguruma that one alone.
    if (escaped == 'v') {
      result_ += "\\u000B";
      rest_.remove_prefix(2);
      return absl::OkStatus();
    }
    Copy(2);
    return absl::OkStatus();
  }

  // Adds characters that ICU has no name for, as the package knows them.
  absl::Status Set(const std::string& characters, bool negated) {
    if (negated && sets_ > 0) return Unknown("the contrary of a class within a set");
    if (sets_ == 0) result_ += negated ? "[^" : "[";
    result_ += characters;
    if (sets_ == 0) result_ += "]";
    return absl::OkStatus();
  }

  // Lets categories and scripts pass, whose names are the same.
  absl::Status Property(bool negated) {
    const size_t end = rest_.find('}');
    if (rest_.size() < 4 || rest_[2] != '{' || end == std::string_view::npos) {
      return Unknown(rest_.substr(0, 3));
    }
    const std::string_view name = rest_.substr(3, end - 3);
    const bool plain =
        name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_") ==
        std::string_view::npos;
    const bool category = name.size() <= 2;
    constexpr std::string_view kScripts[] = {
        "Han",      "Hiragana",  "Katakana",   "Hangul",  "Latin",    "Greek",
        "Cyrillic", "Arabic",    "Hebrew",     "Thai",    "Lao",      "Khmer",
        "Tibetan",  "Myanmar",   "Devanagari", "Bengali", "Armenian", "Georgian",
        "Ethiopic", "Mongolian", "Tamil",      "Telugu",  "Kannada",  "Malayalam"};
    bool known = category;
    for (const std::string_view script : kScripts) known = known || name == script;
    if (!plain || !known) return Unknown(rest_.substr(0, end + 1));
    const std::string property(rest_.substr(0, end + 1));
    rest_.remove_prefix(end + 1);
    const std::string positive = "\\p" + property.substr(2);
    if (name == "L") return Set(positive + NewCharacters(kLetter), negated);
    if (name == "N") return Set(positive + NewCharacters(kNumber), negated);
    if (name == "M") return Set(positive + NewCharacters(kCombines), negated);
    result_ += property;
    return absl::OkStatus();
  }

  void Copy(size_t bytes) {
    result_ += rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
  }

  static absl::Status Unknown(std::string_view what) {
    return absl::InvalidArgumentError(
        "its regular expression has " + Quoted(what) +
        ", which ICU and Oniguruma, for which it was written, do not both understand alike");
  }

  std::string_view rest_;
  std::string result_;
  int sets_ = 0;  // how many stand open
};

}  // namespace

absl::StatusOr<std::string> ForIcu(std::string_view expression) {
  return Rewriting(expression).Run();
}

}  // namespace linserve
