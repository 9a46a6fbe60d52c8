#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "text/tokenizer.h"

namespace linserve {

// Loads a tokenizer.json, the format of the package `tokenizers`
// (https://github.com/huggingface/tokenizers), or what older folders have in its place: a vocab.txt
// of a BertTokenizer, an MPNetTokenizer or an EsmTokenizer, or a vocab.json of a MolformerTokenizer
// or, with the merges.txt beside it, of a RobertaTokenizer. Settings beside it count as in
// transformers 5, which makes the tokenizers of some classes anew of their tokens: see
// TokenizerClass.
//
// The ids are those of its encode(), and a text of nothing has its marks. A text is held in parts:
// blocks of some KiB that are normalised, and then what is cut where the parts of the tokenizer
// surely cut, which is between two words as a rule. Only where 64 KiB hold no such place, or where
// the normalizer finds none in 16 KiB, the text is cut there: words of WordPiece and WordLevel are
// unknown then as they would be whole, other tokens may differ beside the cut.
// server/text/README.md lists the parts that are known.
//
// Tokens of `whole` are found in texts as they stand there, before all others, whatever the files
// say of them.
//
// Returns NOT_FOUND if there is no such file, INVALID_ARGUMENT if it is no such tokenizer, or one
// with a part that is not known.
absl::StatusOr<std::shared_ptr<const Tokenizer>> LoadTokenizerJson(
    const std::string& path, const std::vector<std::string>& whole = {});
absl::StatusOr<std::shared_ptr<const Tokenizer>> LoadVocabularyLines(
    const std::string& path, const std::vector<std::string>& whole = {});
absl::StatusOr<std::shared_ptr<const Tokenizer>> LoadVocabularyObject(
    const std::string& path, const std::vector<std::string>& whole = {});

// Loads a tokenizer.json as the package does by itself, without special tokens: nothing beside the
// file counts, and no marks stand around texts.
absl::StatusOr<std::shared_ptr<const Tokenizer>> LoadBareTokenizer(const std::string& path);

// Reads the text of a tokenizer.json. INVALID_ARGUMENT is as above.
absl::StatusOr<std::shared_ptr<const Tokenizer>> ParseTokenizerJson(std::string_view json);

}  // namespace linserve
