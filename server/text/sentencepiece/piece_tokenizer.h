#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "text/tokenizer.h"

namespace linserve {

// Says which marks stand around the pieces of each text, as the package's encode() puts them for
// arguments of these names.
struct TokenizerOptions {
  bool add_bos = false;
  bool add_eos = false;
};

// Loads a SentencePiece model (https://github.com/google/sentencepiece). Its ids are those that the
// package's encode() gives, but none, not even marks, for a text without pieces. Some 16 KiB of the
// normalised text are held at a time, and pieces are chosen for what cannot depend on what follows.
// Only where 16 KiB hold no such place, because any two neighbours are within some piece
// ("aaaa..."), the text is cut there, and a piece may differ.
//
// Returns NOT_FOUND if there is no such file, INVALID_ARGUMENT if it is no SentencePiece model, or
// one without a mark that is asked for.
absl::StatusOr<std::shared_ptr<const Tokenizer>> LoadSentencePiece(
    const std::string& path, const TokenizerOptions& options = {});

}  // namespace linserve
