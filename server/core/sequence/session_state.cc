#include "core/sequence/session_state.h"

#include <algorithm>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "core/sequence/signature.h"
#include "core/strings/quote.h"

namespace linserve {
namespace {

constexpr const char* kPositionPayload = "linserve/resume-position";

}  // namespace

absl::Status CheckSessionId(const std::string& id) {
  constexpr size_t kLongest = 128;
  if (!id.empty() && id.size() <= kLongest && !id.starts_with(kOwnSessionIds)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("the id of a session has " + std::to_string(id.size()) +
                                    " bytes and is " + Quoted(id) + ", expected 1 to " +
                                    std::to_string(kLongest) + " bytes that do not begin with \"" +
                                    kOwnSessionIds + "\"");
}

absl::Status ResumeFrom(absl::Status status, int64_t position) {
  status.SetPayload(kPositionPayload, absl::Cord(std::to_string(position)));
  return status;
}

absl::Status ReadWithoutResult(const absl::Status& fault, int64_t position) {
  absl::Status status(fault.code(), std::string(fault.message()) +
                                        ": the session has read the chunk all the same; send what "
                                        "comes from row " +
                                        std::to_string(position) + " on, or start it again");
  return ResumeFrom(std::move(status), position);
}

std::optional<int64_t> ResumePosition(const absl::Status& status) {
  const auto payload = status.GetPayload(kPositionPayload);
  int64_t position = 0;
  if (!payload || !absl::SimpleAtoi(std::string(*payload), &position)) return std::nullopt;
  return position;
}

const InputSpec& ChunkInput(const Signature& signature) {
  return *std::find_if(signature.inputs.begin(), signature.inputs.end(),
                       [](const InputSpec& spec) { return !spec.optional && !spec.opens; });
}

absl::Status ValidateChunk(const Signature& signature, const Item& item) {
  if (item.session == nullptr) return absl::OkStatus();
  const int64_t position = item.session->position();
  const std::string has_read = "its session has read " + std::to_string(position) + " rows";
  for (const InputSpec& spec : signature.inputs) {
    const bool given = item.inputs.contains(spec.name);
    const std::string input = "input \"" + spec.name + "\" is ";
    if (spec.opens && given && position > 0) {
      return absl::InvalidArgumentError(input + "given, which only a session's first chunk has; " +
                                        has_read);
    }
    if (spec.opens && !given && !spec.optional && position == 0) {
      return absl::InvalidArgumentError(input + "missing in the session's first chunk");
    }
    if (!spec.opens && spec.optional && given) {
      return absl::InvalidArgumentError(input + "given; a chunk of a session has none");
    }
  }
  const char letter = ChunkInput(signature).axes[0].letter;
  const int64_t length = LengthOf(signature, item, letter);
  const int64_t longest = LongestFor(signature, item, letter);
  if (longest == 0 || length <= longest - position) return absl::OkStatus();
  return absl::InvalidArgumentError("the chunk has " + std::to_string(length) + " rows and " +
                                    has_read + "; the model takes " + std::to_string(longest) +
                                    " in all");
}

}  // namespace linserve
