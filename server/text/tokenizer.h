#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/sequence/truncation.h"
#include "text/pair_template.h"

namespace linserve {

// Names the model's input that a text becomes.
inline constexpr const char* kTextBecomes = "x";

// Says where in a text a token begins and ends, in bytes. A mark stands nowhere.
struct TokenPlace {
  size_t begin = 0;
  size_t end = 0;
  bool is_mark = false;
};

// Holds what a text has become so far.
struct TextTokens {
  // Returns the bytes of memory that it holds.
  size_t held_bytes() const {
    return ids.capacity() * sizeof(int64_t) + places.capacity() * sizeof(TokenPlace);
  }

  std::vector<int64_t> ids;
  std::vector<TokenPlace> places;  // of each id, where they are asked for
};

// Reads one text from its front to its back, a few KiB at a time.
class TokenReader {
 public:
  TokenReader() = default;
  virtual ~TokenReader() = default;
  TokenReader(const TokenReader&) = delete;
  TokenReader& operator=(const TokenReader&) = delete;

  // Goes on a little, appends what is known of the tokens, and returns how much work that was: the
  // bytes that were read, and those that were made of them. INVALID_ARGUMENT if the text is not
  // UTF-8. REQUIRES: not done().
  virtual absl::StatusOr<size_t> Step(TextTokens& tokens) = 0;

  virtual bool done() const = 0;
  virtual size_t left() const = 0;        // bytes of the text that were not read yet
  virtual size_t held_bytes() const = 0;  // of memory, between two calls
  // Says whether the text became anything. REQUIRES: done().
  virtual bool has_pieces() const = 0;
};

// Says which ids stand around those of each text.
struct Marks {
  std::vector<int64_t> before;
  std::vector<int64_t> after;
  bool around_nothing = false;  // also where a text becomes nothing
};

// Leaves at most `longest` ids of a text, the marks around it among them; 0: as many as there are.
// INVALID_ARGUMENT tells `longest`.
absl::Status Truncate(const Marks& marks, Truncation truncation, int64_t longest,
                      std::vector<int64_t>& ids);

// Turns texts into token ids and back. Thread-safe.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // Names the file in a model directory that it was made of.
  const std::string& file() const { return file_; }
  // Returns how many ids there may be: all are below it.
  virtual int64_t vocabulary() const = 0;
  // Returns what an id stands for as the vocabulary has it; "" if it is none's. REQUIRES: `id` is
  // below vocabulary().
  virtual const std::string& PieceOf(int64_t id) const = 0;
  // Returns the id that stands for what the vocabulary has so; nullopt if none does. It is not
  // quick.
  virtual std::optional<int64_t> IdOf(std::string_view piece) const = 0;
  // Begins to read a text, which must not outlive either; `places` says whether to find the place
  // of each token.
  virtual std::unique_ptr<TokenReader> Read(std::string_view text, bool places) const = 0;

  const Marks& marks() const { return marks_; }
  // Returns how two texts are read together; nullopt if the tokenizer's files do not say it.
  const std::optional<PairTemplate>& pair() const { return pair_; }
  // Returns the mark that ends the ids of each text, if one does.
  std::optional<int64_t> end_mark() const;
  // Returns which tokens of long texts the files say to drop; nullopt if they say nothing.
  virtual std::optional<Truncation> truncation() const { return std::nullopt; }
  // Returns the token that the files name for what is masked or, without one, for the end of a
  // text; nullopt if they name neither.
  virtual std::optional<int64_t> filler() const { return std::nullopt; }
  // Returns the token that words become which have none; nullopt if the files name none.
  virtual std::optional<int64_t> unknown() const { return std::nullopt; }
  // Returns how many tokens the tokenizer's own file leaves of a text; 0: any number.
  virtual int64_t longest() const { return 0; }

  // Returns the ids of a whole text: see TextEncoding.
  absl::StatusOr<std::vector<int64_t>> Encode(std::string_view text) const {
    return Encode(text, marks_);
  }
  // Does it with other marks around the text.
  absl::StatusOr<std::vector<int64_t>> Encode(std::string_view text, const Marks& marks) const;

  // Inverts Encode(), without marks or with their names; ids that stand for nothing add nothing.
  absl::StatusOr<std::string> Decode(const std::vector<int64_t>& ids, bool marks = false) const {
    return DecodeIds(ids, marks);
  }

 protected:
  Tokenizer(std::string file, Marks marks, std::optional<PairTemplate> pair = std::nullopt)
      : file_(std::move(file)), marks_(std::move(marks)), pair_(std::move(pair)) {}

 private:
  virtual absl::StatusOr<std::string> DecodeIds(const std::vector<int64_t>& ids,
                                                bool marks) const = 0;

  const std::string file_;
  const Marks marks_;
  const std::optional<PairTemplate> pair_;
};

}  // namespace linserve
