#include "text/huggingface/models/token_vocabulary.h"

#include "core/strings/quote.h"

namespace linserve {

absl::Status TokenVocabulary::Add(std::string text, int64_t id) {
  if (id < 0 || id >= kMostIds) {
    return absl::InvalidArgumentError("its token " + Quoted(text) + " has the id " +
                                      std::to_string(id) + ", expected 0 to " +
                                      std::to_string(kMostIds - 1));
  }
  if (text.size() > kLongestToken) {
    return absl::InvalidArgumentError("its token " + std::to_string(id) + " has " +
                                      std::to_string(text.size()) + " bytes, expected at most " +
                                      std::to_string(kLongestToken));
  }
  const auto index = static_cast<size_t>(id);
  if (index >= texts_.size()) texts_.resize(index + 1);
  if (texts_[index].empty()) {
    texts_[index] = std::move(text);
  } else {
    shared_.emplace_back(std::move(text), static_cast<int32_t>(id));
  }
  return absl::OkStatus();
}

void TokenVocabulary::Index() {
  texts_.shrink_to_fit();
  ids_.reserve(texts_.size() + shared_.size());
  for (size_t id = 0; id < texts_.size(); ++id) {
    if (!texts_[id].empty()) ids_[texts_[id]] = static_cast<int32_t>(id);
  }
  for (const auto& [text, id] : shared_) ids_[text] = id;
}

const std::string& TokenVocabulary::TextOf(int64_t id) const {
  static const std::string none;
  return id >= 0 && id < size() ? texts_[static_cast<size_t>(id)] : none;
}

}  // namespace linserve
