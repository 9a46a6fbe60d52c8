#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace linserve {

// Represents the SentencePiece library, which models are trained by here, and whose ids ours are
// compared with. Its header is not included, because it declares names of absl.
class Package {
 public:
  // Trains a model, which is written to `prefix` + ".model", on a file of sentences. `arguments`
  // are those of spm_train. Returns whether that succeeds.
  static bool Train(const std::string& sentences, const std::string& prefix,
                    const std::string& arguments);

  // REQUIRES: the file is a model.
  explicit Package(const std::string& path);
  ~Package();

  std::vector<int64_t> Encode(std::string_view text) const;
  // Returns where in the text the ids of Encode() begin and end, in bytes.
  std::vector<std::pair<size_t, size_t>> Places(std::string_view text) const;
  std::string Decode(const std::vector<int64_t>& ids) const;

 private:
  struct Processor;
  const std::unique_ptr<Processor> processor_;
};

}  // namespace linserve
