#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "text/sentencepiece/choose_pieces.h"
#include "text/sentencepiece/normalizer.h"
#include "text/sentencepiece/vocabulary.h"
#include "text/tokenizer.h"

namespace linserve {

// Reads a text into pieces: see LoadSentencePiece().
class PieceReader : public TokenReader {
 public:
  // All of them must outlive it.
  PieceReader(const Vocabulary& pieces, const Normalizer& normalizer, std::string_view text,
              bool places);

  absl::StatusOr<size_t> Step(TextTokens& tokens) override;
  bool done() const override { return begun_ && normalized_.done() && waiting_.empty(); }
  size_t left() const override { return normalized_.left(); }
  size_t held_bytes() const override {
    return waiting_.capacity() + origins_.capacity() * sizeof(size_t);
  }
  bool has_pieces() const override { return has_pieces_; }

 private:
  size_t ReadyBytes();
  void Encode(size_t bytes, TextTokens& tokens);
  void Add(const ChosenPiece& piece, TextTokens& tokens);
  void AddPlaces(size_t ids_before, size_t begin, size_t bytes, TextTokens& tokens);

  const Vocabulary& pieces_;
  const bool finds_places_;
  NormalizedText normalized_;
  std::string waiting_;          // normalised, and not ids yet
  std::vector<size_t> origins_;  // of its bytes, where places are asked for
  size_t look_at_;               // as many bytes must wait before a place to cut is looked for
  float score_ = 0;              // of what became ids
  bool begun_ = false;
  bool after_unknown_ = false;
  bool has_pieces_ = false;
};

}  // namespace linserve
