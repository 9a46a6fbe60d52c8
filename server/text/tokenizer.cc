#include "text/tokenizer.h"

#include <filesystem>
#include <utility>

#include "core/utf8.h"
#include "text/piece_functions.h"

namespace linserve {
absl::StatusOr<std::shared_ptr<const Tokenizer>> Tokenizer::Load(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    return absl::NotFoundError("there is no tokenizer at " + path);
  }
  const auto functions = OpenPieceFunctions();
  if (!functions.ok()) return functions.status();
  void* const model = (*functions)->load(path.c_str());
  if (model == nullptr) {
    return absl::InvalidArgumentError(path + " is no SentencePiece model");
  }
  return std::shared_ptr<const Tokenizer>(new Tokenizer(**functions, model));
}

absl::StatusOr<std::vector<int64_t>> Tokenizer::Encode(std::string_view text) const {
  if (!IsUtf8(text)) return absl::InvalidArgumentError("the text is not UTF-8");
  std::vector<int64_t> ids;
  const auto append = [](void* sink, const int* begin, size_t count) {
    static_cast<std::vector<int64_t>*>(sink)->assign(begin, begin + count);
  };
  if (!functions_.encode(model_, text.data(), text.size(), append, &ids)) {
    return absl::InternalError("SentencePiece failed on the text");
  }
  return ids;
}

absl::Status Truncate(Truncation truncation, int64_t longest, std::vector<int64_t>& ids) {
  const auto count = static_cast<int64_t>(ids.size());
  if (longest == 0 || count <= longest) return absl::OkStatus();
  if (truncation == Truncation::kNone) {
    return absl::InvalidArgumentError(
        "the text has " + std::to_string(count) + " tokens, but the model takes at most " +
        std::to_string(longest) + "; shorten it, or ask for truncation (left or right)");
  }
  if (truncation == Truncation::kLeft) ids.erase(ids.begin(), ids.end() - longest);
  ids.resize(static_cast<size_t>(longest));
  return absl::OkStatus();
}

}  // namespace linserve
