#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "core/sequence/truncation.h"
#include "text/sentencepiece/choose_pieces.h"
#include "text/tokenizer.h"

namespace linserve {

// Says where in a text a token begins and ends, in bytes. A mark stands nowhere.
struct TokenPlace {
  size_t begin = 0;
  size_t end = 0;
  bool is_mark = false;
};

// Holds one text on its way to token ids, which it becomes in turns. The ids are those that the
// package's encode() gives, but none, not even marks, for a text without pieces. It holds some
// 16 KiB of the normalised text at a time, and pieces are chosen for what cannot depend on what
// follows. Only where 16 KiB hold no such place, because any two neighbours are within some piece
// ("aaaa..."), the text is cut there, and a piece may differ.
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
  size_t left() const { return done_ ? 0 : normalized_.left(); }

  // Puts the marks around the ids, and truncates them. REQUIRES: done().
  absl::Status Finish();

  const std::vector<int64_t>& ids() const { return ids_; }
  // Returns the places of the ids, if they were asked for. Of the bytes that an unknown character
  // becomes, the last has its place, and the others none.
  const std::vector<TokenPlace>& places() const { return places_; }

  // Returns the bytes of memory that it holds between two calls.
  size_t held_bytes() const {
    return ids_.capacity() * sizeof(int64_t) + places_.capacity() * sizeof(TokenPlace) +
           waiting_.capacity() + origins_.capacity() * sizeof(size_t);
  }

 private:
  size_t ReadyBytes();
  void Encode(size_t bytes);
  void Add(const ChosenPiece& piece);
  void AddPlaces(size_t ids_before, size_t begin, size_t bytes);
  void Limit();

  const Tokenizer& tokenizer_;
  const bool marks_ = true;
  const bool finds_places_ = false;
  const Truncation truncation_;
  const size_t longest_;  // 0: any length
  NormalizedText normalized_;
  std::string waiting_;          // normalised, and not ids yet
  std::vector<size_t> origins_;  // of its bytes, where places are asked for
  size_t look_at_;               // as many bytes must wait before a place to cut is looked for
  float score_ = 0;              // of what became ids
  bool after_unknown_ = false;
  bool has_pieces_ = false;
  bool done_ = false;
  std::vector<int64_t> ids_;
  std::vector<TokenPlace> places_;
};

}  // namespace linserve
