#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "text/huggingface/pipeline.h"
#include "text/tokenizer.h"

namespace linserve {

// Reads a text through a pipeline: see LoadTokenizerJson(). Between two added tokens stands a
// segment; it is normalised in blocks, and these wait until a place is found where the rest of the
// pipeline surely cuts.
class PipelineReader : public TokenReader {
 public:
  // Both must outlive it.
  PipelineReader(const Pipeline& pipeline, std::string_view text, bool places);

  absl::StatusOr<size_t> Step(TextTokens& tokens) override;
  bool done() const override {
    return segment_read_ && waiting_.text.empty() && !token_ && at_ == text_.size();
  }
  size_t left() const override { return text_.size() - at_; }
  size_t held_bytes() const override;
  bool has_pieces() const override { return has_pieces_; }

 private:
  // Says how much of what waits becomes tokens now.
  struct Ready {
    size_t bytes = 0;    // 0: it is not known yet
    size_t goes_on = 0;  // see SplitPlace, for what follows
    bool within_word = false;
  };

  absl::Status Validate(size_t end);
  absl::Status LookForToken(size_t limit);
  absl::Status TakeBlock();
  absl::StatusOr<size_t> BlockEnd(size_t limit);
  void FillBlock(size_t end);
  Ready FindReady();
  std::optional<size_t> CanCut(size_t at) const;
  absl::Status Encode(const Ready& ready, TextTokens& tokens);
  absl::Status EncodePart(size_t begin, size_t end, TextTokens& tokens);
  void AddFound(TextTokens& tokens);
  void Trim(ByteRange piece, bool first, TokenPlace& place) const;
  void AddToken(const AddedToken& token, TokenPlace place, TextTokens& tokens);
  void EndSegment(TextTokens& tokens);

  const Pipeline& pipeline_;
  const std::string_view text_;
  const bool finds_places_;

  size_t at_ = 0;         // all before it was read
  size_t validated_ = 0;  // all before it is UTF-8
  size_t scan_ = 0;       // no added token begins before it, but the one that is known
  std::optional<AddedTokenFinder::Match> token_;  // that ends the segment

  NormalizerState normalizer_state_;
  bool segment_read_ = false;  // to its end
  bool begins_text_ = true;
  AlignedText block_;
  AlignedText waiting_;  // normalised, and not tokens yet
  size_t look_at_;       // as many bytes must wait before a place to cut is looked for
  size_t goes_on_ = 0;
  bool in_long_word_ = false;       // it has its token already
  std::optional<char32_t> before_;  // the character before what waits

  AlignedText part_;
  std::vector<ByteRange> pieces_;
  FoundTokens found_;
  bool has_pieces_ = false;
  bool has_places_ = false;
};

}  // namespace linserve
