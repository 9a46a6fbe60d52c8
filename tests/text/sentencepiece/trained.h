#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "support/paths.h"
#include "support/sentencepiece_package.h"
#include "support/test_files.h"
#include "text/sentencepiece/piece_tokenizer.h"
#include "text/tokenizer.h"

namespace linserve {

// Holds a trained model, as the package and as we read it.
struct Trained {
  Trained(const TempDir& directory, const std::string& arguments) {
    const std::string prefix = directory.File("model");
    EXPECT_TRUE(Package::Train(DataFile("sentence_encoder/texts.txt"), prefix, arguments));
    package = std::make_unique<Package>(prefix + ".model");
    const auto loaded = LoadSentencePiece(prefix + ".model");
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    tokenizer = *loaded;
  }

  std::unique_ptr<Package> package;
  std::shared_ptr<const Tokenizer> tokenizer;
};

// Lists arguments that train a model of each kind.
inline const std::vector<std::string>& KindsOfModels() {
  static const std::vector<std::string> kinds = {
      "--model_type=unigram --vocab_size=500",
      "--model_type=unigram --vocab_size=700 --byte_fallback --normalization_rule_name=nfkc_cf",
      "--model_type=unigram --vocab_size=500 --split_by_whitespace=false",
      "--model_type=unigram --vocab_size=500 --user_defined_symbols=<sep>,the,\xE2\x96\x81of",
      "--model_type=unigram --vocab_size=500 --treat_whitespace_as_suffix",
      "--model_type=unigram --vocab_size=500 --normalization_rule_name=identity "
      "--remove_extra_whitespaces=false --add_dummy_prefix=false",
      "--model_type=bpe --vocab_size=500",
      "--model_type=bpe --vocab_size=700 --byte_fallback --normalization_rule_name=identity "
      "--remove_extra_whitespaces=false --split_digits",
      "--model_type=bpe --vocab_size=500 --user_defined_symbols=<sep>,the",
      "--model_type=word --vocab_size=300",
      "--model_type=char --vocab_size=300 --user_defined_symbols=<sep>",
      "--model_type=char --vocab_size=300 --byte_fallback --treat_whitespace_as_suffix",
  };
  return kinds;
}

// Makes texts of what has rules of its own somewhere: spaces, characters that NFKC changes, joins
// or drops, symbols of the models above, and words.
class RandomTexts {
 public:
  explicit RandomTexts(unsigned seed) : random_(seed) {}

  std::string Next(size_t most_parts) {
    static const std::vector<std::string> parts = {" ",
                                                   " ",
                                                   " ",
                                                   "  ",
                                                   "\t",
                                                   "\n",
                                                   "\xC2\xA0",
                                                   "\xE3\x80\x80",
                                                   "\xE2\x96\x81",
                                                   "\xE2\x96\x81\xE2\x96\x81",
                                                   "the",
                                                   "the ",
                                                   " of",
                                                   "<sep>",
                                                   "<s>",
                                                   "<unk>",
                                                   "<0x41>",
                                                   "a",
                                                   "aa",
                                                   "aaaa",
                                                   "e",
                                                   "s",
                                                   "ing",
                                                   "tion",
                                                   "computer",
                                                   " program",
                                                   "12",
                                                   "3.14",
                                                   "--",
                                                   "\"",
                                                   "'",
                                                   "e\xCC\x81",
                                                   "\xCC\x81",
                                                   "\xCC\x81\xCC\xA7",
                                                   "\xC3\xA9",
                                                   "\xEF\xB7\xBA",
                                                   "\xEF\xBC\xA1",
                                                   "\xEF\xAC\x81",
                                                   "\xE2\x84\xA6",
                                                   "\xC2\xBD",
                                                   "\xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8",
                                                   "\xEF\xBD\xB6\xEF\xBE\x9E",
                                                   "\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x92\xBB",
                                                   "\xF0\x9F\x98\x80",
                                                   "\xE4\xBD\xA0\xE5\xA5\xBD",
                                                   "\xE3\x80\x82",
                                                   "\xC2\xAD",
                                                   "\xE2\x80\x8B",
                                                   "\x01",
                                                   "\x7F",
                                                   std::string(1, '\0'),
                                                   "\xEF\xBB\xBF",
                                                   "\xEF\xBF\xBD",
                                                   "\xF4\x8F\xBF\xBF",
                                                   "\xD9\x84\xD9\x91",
                                                   "Z",
                                                   "\xC3\x9F",
                                                   "\xC4\xB0"};
    std::string text;
    for (size_t left = Below(most_parts + 1); left > 0; --left) {
      const std::string& part = parts[Below(parts.size())];
      for (size_t times = Below(8) == 0 ? Below(5) : 1; times > 0; --times) text += part;
    }
    return text;
  }

 private:
  size_t Below(size_t bound) {
    return std::uniform_int_distribution<size_t>(0, bound - 1)(random_);
  }

  std::mt19937 random_;
};

}  // namespace linserve
