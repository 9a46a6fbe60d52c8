#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "core/sequence/truncation.h"
#include "text/tokenizer.h"

namespace linserve {

// Holds one text on its way to token ids, which it becomes in turns. The ids are those that the
// tokenizer's package gives; how much of the text is held meanwhile, and what happens to texts in
// which no place to cut is found, say the tokenizers themselves.
class TextEncoding {
 public:
  // Leaves at most `longest` ids, the marks among them, as Tokenizer::Truncate() does. Both the
  // tokenizer and the text must outlive it.
  TextEncoding(const Tokenizer& tokenizer, std::string_view text, Truncation truncation,
               int64_t longest);
  // Finds the ids of the whole text, with or without marks, and the place in it of each.
  TextEncoding(const Tokenizer& tokenizer, std::string_view text, bool marks);

  // Goes on until about `budget` bytes were read, or made of what was read, and takes them from it.
  // INVALID_ARGUMENT if the text is not UTF-8.
  absl::Status Advance(size_t& budget);

  // Says whether Advance() has nothing left to do. A text that has too many tokens is not read to
  // its end, unless its last ones are wanted.
  bool done() const { return done_; }

  // Returns how many bytes of the text are left to read.
  size_t left() const { return done_ ? 0 : reader_->left(); }

  // Puts the marks around the ids, and truncates them. REQUIRES: done().
  absl::Status Finish();

  const std::vector<int64_t>& ids() const { return tokens_.ids; }
  // Returns the places of the ids, if they were asked for. Of the bytes that an unknown character
  // becomes, the last has its place, and the others none.
  const std::vector<TokenPlace>& places() const { return tokens_.places; }

  // Returns the bytes of memory that it holds between two calls.
  size_t held_bytes() const { return tokens_.held_bytes() + reader_->held_bytes(); }

 private:
  void AddMarks(const std::vector<int64_t>& marks);
  void Limit();

  const Tokenizer& tokenizer_;
  const bool marks_ = true;
  const bool finds_places_ = false;
  const Truncation truncation_;
  const size_t longest_;  // 0: any length
  TextTokens tokens_;
  const std::unique_ptr<TokenReader> reader_;
  bool done_ = false;
};

}  // namespace linserve
