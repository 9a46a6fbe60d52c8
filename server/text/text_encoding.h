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

// Holds a text, or two that are read together, on the way to token ids, which they become in turns.
// The ids are those that the tokenizer's package gives; how much of a text is held meanwhile, and
// what happens to texts in which no place to cut is found, say the tokenizers themselves.
class TextEncoding {
 public:
  // Leaves at most `longest` ids, the marks among them, as Truncate() does. The tokenizer, the text
  // and the marks, which are the tokenizer's where no others are given, must outlive it.
  TextEncoding(const Tokenizer& tokenizer, std::string_view text, Truncation truncation,
               int64_t longest)
      : TextEncoding(tokenizer, text, truncation, longest, tokenizer.marks()) {}
  TextEncoding(const Tokenizer& tokenizer, std::string_view text, Truncation truncation,
               int64_t longest, const Marks& marks);
  // Finds the ids of the whole text, with or without marks, and the place in it of each.
  TextEncoding(const Tokenizer& tokenizer, std::string_view text, bool marks);
  // Reads two texts together, first the one and then the other, and leaves at most `longest` ids,
  // the marks among them: see LongestFirst(). The tokenizer and both texts must outlive it.
  // With what first() of an encoding was that had the same first text, truncation and `longest`,
  // that text is not read again. REQUIRES: tokenizer.pair().
  TextEncoding(const Tokenizer& tokenizer, std::string_view text, std::string_view second,
               Truncation truncation, int64_t longest,
               std::shared_ptr<const FirstText> first = nullptr);

  // Goes on until about `budget` bytes were read, or made of what was read, and takes them from it.
  // INVALID_ARGUMENT if the text is not UTF-8.
  absl::Status Advance(size_t& budget);

  // Says whether Advance() has nothing left to do. A text that has too many tokens is not read to
  // its end, unless its last ones are wanted, or its length says how much stays of another one.
  bool done() const { return done_; }

  // Returns how many bytes of the texts are left to read.
  size_t left() const;

  // Puts the marks around the ids, and truncates them. INVALID_ARGUMENT tells `longest`, if there
  // are too many that must not be dropped. REQUIRES: done().
  absl::Status Finish();

  const std::vector<int64_t>& ids() const { return tokens_.ids; }
  // Returns the first of two texts. REQUIRES: done().
  const std::shared_ptr<const FirstText>& first() const { return first_; }
  // Returns the type of each id, by which the model tells two texts apart; empty where all are 0.
  const std::vector<int64_t>& types() const { return types_; }
  // Returns the places of the ids, if they were asked for. Of the bytes that an unknown character
  // becomes, the last has its place, and the others none.
  const std::vector<TokenPlace>& places() const { return tokens_.places; }

  // Returns the bytes of memory that it holds between two calls.
  size_t held_bytes() const;

 private:
  void AddMarks(const std::vector<int64_t>& marks);
  void Limit();
  void EndTurn();
  bool HasTooMany() const;
  bool HasEnough() const;
  absl::Status FinishPair();
  void KeepFirst();
  void JoinPair(size_t first, size_t second);

  const PairTemplate* const pair_ = nullptr;  // null: it is one text
  const Marks* const marks_;
  const bool finds_places_ = false;
  const Truncation truncation_;
  const size_t longest_;                    // 0: any length
  TextTokens tokens_;                       // of two texts, those of the one that is read
  std::shared_ptr<const FirstText> first_;  // of two texts, once it is read
  std::vector<int64_t> types_;
  std::unique_ptr<TokenReader> reader_;
  std::unique_ptr<TokenReader> next_;  // of the second text, until its turn comes
  bool done_ = false;
};

}  // namespace linserve
