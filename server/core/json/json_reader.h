#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace linserve {

// Reads a JSON text from its front to its back, each value as its caller asks for it. It keeps
// nothing of the text: what is read goes straight to where it is needed, and what is too much is
// refused where it stands. Errors are INVALID_ARGUMENT and say at which byte the text is no JSON,
// or which of its strings is not whole characters of UTF-8; after one, nothing more is read.
class JsonReader {
 public:
  // Is asked once for every 64 KiB of the text, where a value begins. An error ends the reading.
  using GoOn = std::function<absl::Status()>;

  enum class Kind : uint8_t { kObject, kArray, kString, kNumber, kBool, kNull, kNone };

  // The text must outlive the reader. A byte order mark before it is passed over. `name` is what
  // errors call the text.
  JsonReader(std::string_view text, GoOn go_on, std::string_view name = "the body");

  // Returns what the next value is, by its first character; kNone where no value begins.
  Kind Next();
  // Returns what the first element of the array is that comes next; kNone if it has none.
  Kind NextInside();
  // Returns how many elements the array has at most that comes next, if it holds no other arrays.
  size_t ElementsAhead() const;

  // These read the next value, and return an error if it is of another kind. `member` and
  // `element` are called for each, to read its value.
  absl::Status Object(const std::function<absl::Status(const std::string& key)>& member);
  absl::Status Array(const std::function<absl::Status()>& element);
  absl::StatusOr<std::string> String();
  absl::StatusOr<std::string_view> Number();  // its text, for IntegerOf() or DoubleOf()
  absl::StatusOr<bool> Bool();

  // Reads the next value, whatever it is, and returns its text.
  absl::StatusOr<std::string_view> Skip();

  // Returns OK at the end of the text.
  absl::Status End();

  // Returns OK if the next value is of this kind. Otherwise the error says so, unless the text is
  // no JSON there.
  absl::Status Expect(Kind kind, const std::string& otherwise);
  absl::Status Unexpected(const std::string& what);

 private:
  absl::Status Enter(char open);
  absl::Status Leave(char close);
  absl::Status Step();
  absl::Status SkipValue();
  absl::Status SyntaxError() const;

  void SkipSpace();
  bool Ahead(char expected);
  bool Take(char expected);         // after any space
  bool TakeHere(char expected);     // without it
  bool TakeWord(std::string_view);  // after any space
  bool TakeDigits();                // one at least

  const std::string_view text_;
  const GoOn go_on_;
  const std::string_view name_;
  size_t at_;         // what comes next
  size_t next_step_;  // where to ask whether to go on
  int depth_ = 0;
};

}  // namespace linserve
