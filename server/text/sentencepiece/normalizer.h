#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "text/sentencepiece/piece_model.h"
#include "text/sentencepiece/piece_trie.h"

namespace linserve {

// Returns OK if the rules are whole. INVALID_ARGUMENT says what is wrong with them.
absl::Status CheckRules(const NormalizerRules& rules);

// Says what the characters of a text become before pieces are looked for.
class Normalizer {
 public:
  // Texts of `kept` stay what they are. Both must outlive it. REQUIRES: CheckRules() is OK.
  Normalizer(const NormalizerRules& rules, const PieceTrie& kept, bool space_at_end);

  // Says what the first `bytes` bytes of a text become.
  struct Prefix {
    std::string_view becomes;
    size_t bytes = 0;
  };

  // Takes the longest beginning of the text for which there is a rule, or one character. `bytes` is
  // 0 if the text begins with no character of UTF-8.
  Prefix First(std::string_view text) const;

  // Takes the shortest beginning of the text for which there is a rule; `bytes` is 0 if there is
  // none.
  Prefix Shortest(std::string_view text) const { return Mapped(text, true); }

  const NormalizerRules& rules() const { return rules_; }
  bool space_at_end() const { return space_at_end_; }  // where the dummy prefix stands

 private:
  Prefix Mapped(std::string_view text, bool shortest) const;

  const NormalizerRules& rules_;
  const PieceTrie& kept_;
  const bool space_at_end_;
  std::string_view trie_;     // units of four bytes
  std::string_view becomes_;  // texts that end with a zero byte
};

// Normalises one text, part by part.
class NormalizedText {
 public:
  // Both must outlive it.
  NormalizedText(const Normalizer& normalizer, std::string_view text)
      : normalizer_(normalizer), rest_(text) {}

  // Appends to `target` what comes next of the text, and stops once so many bytes were read or
  // appended. `origins`, if there are any, gets for each of these bytes where in the text that
  // begins of which it was made. INVALID_ARGUMENT if the text is not UTF-8.
  absl::Status Append(size_t work, std::string& target, std::vector<size_t>* origins = nullptr);

  size_t left() const { return rest_.size(); }  // bytes that were not read yet
  bool done() const { return done_; }           // REQUIRES: Append() was called
  size_t end() const { return end_; }           // of what was not removed. REQUIRES: done()

 private:
  void Take(std::string_view becomes, std::string& target);
  void Put(std::string_view text, std::string& target);
  void PutSpace(std::string& target);
  void Emit(std::string_view text, size_t origin, std::string& target);
  void End(std::string& target);

  const Normalizer& normalizer_;
  std::string_view rest_;
  std::vector<size_t>* origins_ = nullptr;  // while Append() runs
  size_t at_ = 0;                           // where in the text that begins which is taken
  bool begun_ = false;                      // something that is not removed was read
  bool after_space_ = false;                // further spaces are removed
  std::vector<size_t> held_spaces_;  // removed if nothing follows; where they are in the text
  size_t end_ = 0;
  bool done_ = false;
};

}  // namespace linserve
