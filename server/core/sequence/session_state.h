#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"

namespace linserve {

struct InputSpec;
struct Item;
struct Signature;

// Holds what the rows read so far of a sequence left to those that follow: with it a sequence is
// computed chunk by chunk. It is opaque to all but the model that made it. A forward pass takes it
// one chunk further once its results are taken; until then, nobody else may use it.
class SessionState {
 public:
  virtual ~SessionState() = default;

  virtual int64_t position() const = 0;  // rows read so far
  virtual int64_t bytes() const = 0;     // bytes of memory, the same at any position
  // Says whether it was on a device that is lost: then it is, too. Not to be asked while a chunk of
  // it is computed.
  virtual bool lost() const { return false; }
};

// Begins the ids of sessions that the server makes for itself.
inline constexpr char kOwnSessionIds[] = "linserve:";

// Returns OK if a caller may name a session like that: by 1 to 128 bytes that do not begin with
// kOwnSessionIds.
absl::Status CheckSessionId(const std::string& id);

inline constexpr char kNoTextInSessions[] =
    "a chunk of a session takes token ids: where a text is cut changes its tokens";

// Holds what the caller says of a sequence that is the next chunk of a session.
struct SessionChunk {
  std::string id;                     // not empty; the caller's own: others may use the same
  bool start = false;                 // nothing was read before, or only what `state` holds
  bool end = false;                   // nothing follows
  bool save = false;                  // the caller wants the session after this chunk
  std::optional<int64_t> position{};  // how many rows the caller takes to have been read before
  std::string state{};                // the saved session that is to go on
};

// Adds to the status of a chunk that does not go on where its session stands the row from which the
// caller should send.
absl::Status ResumeFrom(absl::Status status, int64_t position);

// Returns the answer to a chunk whose result was lost, although its session has read it.
absl::Status ReadWithoutResult(const absl::Status& fault, int64_t position);

// Returns the row that ResumeFrom() gave the status, if it gave any.
std::optional<int64_t> ResumePosition(const absl::Status& status);

// Returns the input whose rows a session reads chunk by chunk.
const InputSpec& ChunkInput(const Signature& signature);

// Returns OK if the item, which is valid for the signature, can be its session's next chunk, or has
// no session. Returns INVALID_ARGUMENT if it lacks what a first chunk brings (InputSpec::opens), or
// brings it later; if it has inputs that a session does not take (other optional ones); or if the
// sequence would become longer than the model takes.
absl::Status ValidateChunk(const Signature& signature, const Item& item);

}  // namespace linserve
