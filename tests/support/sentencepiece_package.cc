#include "support/sentencepiece_package.h"

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <cstdlib>

namespace linserve {

struct Package::Processor {
  sentencepiece::SentencePieceProcessor own;
};

bool Package::Train(const std::string& sentences, const std::string& prefix,
                    const std::string& arguments) {
  return sentencepiece::SentencePieceTrainer::Train(
             "--minloglevel=2 --num_threads=1 --hard_vocab_limit=false --input=" + sentences +
             " --model_prefix=" + prefix + " " + arguments)
      .ok();
}

Package::Package(const std::string& path) : processor_(std::make_unique<Processor>()) {
  if (!processor_->own.Load(path).ok()) std::abort();
}

Package::~Package() = default;

std::vector<int64_t> Package::Encode(std::string_view text) const {
  std::vector<int> ids;
  if (!processor_->own.Encode(text, &ids).ok()) std::abort();
  return {ids.begin(), ids.end()};
}

std::vector<std::pair<size_t, size_t>> Package::Places(std::string_view text) const {
  const auto encoded = processor_->own.EncodeAsImmutableProto(text);
  std::vector<std::pair<size_t, size_t>> places;
  for (const auto& piece : encoded.pieces()) places.emplace_back(piece.begin(), piece.end());
  return places;
}

std::string Package::Decode(const std::vector<int64_t>& ids) const {
  std::string text;
  if (!processor_->own.Decode(std::vector<int>(ids.begin(), ids.end()), &text).ok()) std::abort();
  return text;
}

}  // namespace linserve
