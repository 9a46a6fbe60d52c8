#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "core/sequence/item.h"
#include "core/sequence/priority.h"
#include "core/sequence/session_state.h"
#include "core/sequence/signature.h"
#include "core/sequence/truncation.h"
#include "core/tensor/tensor.h"

namespace linserve {

// Says what is spoken with the server: linserve.v1.EmbeddingService, or
// inference.GRPCInferenceService, the Open Inference Protocol, which other servers speak, too.
enum class Protocol : uint8_t { kLinserve, kOip };

// Returns the protocol named "linserve" or "oip".
std::optional<Protocol> ProtocolFromName(std::string_view name);

// Holds one sequence of a call; its id is echoed in its result.
struct NamedSequence {
  std::string id;
  TensorMap inputs;
  std::optional<std::string> text{};      // in place of the input `x`, for models with a tokenizer
  std::optional<SessionChunk> session{};  // the session whose next chunk this is
};

// Says how far a sequence is: on its way to the server, computed, on its way back.
struct EmbedProgress {
  size_t index = 0;       // its place in EmbedCall::sequences
  int64_t rows = 0;       // rows of the sequence
  int64_t rows_sent = 0;  // all of them, unless it is sent in chunks
  std::optional<ItemProgress> computed{};
  int64_t rows_received = 0;  // rows of the result
};

// Holds one request of one or many sequences.
struct EmbedCall {
  std::string model;            // empty: the only model that the server has
  int64_t version = 0;          // 0: the latest
  OutputOptions options;        // all of them count, whatever the model is served with
  uint32_t rows_per_chunk = 0;  // 0: the server's choice
  Priority priority = Priority::kNormal;
  std::vector<NamedSequence> sequences{};
  std::string request_id{};                // for EmbedStream: empty lets the stream choose one
  std::optional<Truncation> truncation{};  // for texts; nullopt: as the model's option says
  std::string prompt_name{};               // of the model's, before each text; "": its default one
  // Embed() sends the one sequence of a call in chunks of about so many bytes if its `x`, whose
  // rows lie along its first axis, is larger: so that no message is larger. 0: it is sent as a
  // whole.
  size_t chunk_bytes = 0;
  // Tells of sequences that take long. Embed() calls it, on several threads but one at a time.
  std::function<void(const EmbedProgress&)> on_progress{};
};

// Says what became of one sequence. `outputs` is empty unless `status` is OK. A chunk that its
// session cannot take has a ResumePosition().
struct SequenceResult {
  size_t index = 0;  // its place in EmbedCall::sequences
  std::string id;
  absl::Status status;
  TensorMap outputs;
  int64_t tokens = 0;  // the sequence's true length
  Timing timing;
  int64_t position = 0;   // for a chunk: rows that its session has read
  std::string session{};  // the saved session, if that was asked for
};

// Gets the end of one request: its status as a whole and, if that is OK, a result for each of its
// sequences in the order of EmbedCall::sequences.
using EmbedCallback = std::function<void(absl::Status, std::vector<SequenceResult>)>;

// Holds a prompt, and says how it is to go on.
struct GenerateCall {
  std::string model;                  // empty: the only model that the server has
  int64_t version = 0;                // 0: the latest
  std::optional<std::string> text{};  // the prompt, where the model has a tokenizer
  std::vector<int64_t> token_ids{};   // the prompt otherwise
  TensorMap inputs{};                 // whatever else the model takes: an encoder's x, a context
  int64_t max_tokens = 0;             // 0: as many as the model takes
  double temperature = 0;             // 0: always the likeliest token
  int64_t top_k = 0;                  // 0: all
  double top_p = 1;
  uint64_t seed = 0;
  std::vector<int64_t> stop_tokens{};
  Priority priority = Priority::kNormal;
};

// Holds the tokens that came together, and what they add to the text.
struct GeneratedTokens {
  std::vector<int64_t> ids;
  std::string text;
};

struct GenerationEnd {
  std::string reason;  // "stop", "max_tokens", "length"
  int64_t prompt_tokens = 0;
  int64_t generated_tokens = 0;
};

// Describes a model as the server does.
struct ModelDescription {
  std::string name;
  int64_t version = 0;
  std::string architecture;
  std::string state;  // "LOADING", "READY", "DRAINING"
  Signature signature;
  int64_t parameters = 0;
  std::string dtype;
  std::string padding;
  std::string pooling{};        // as it is served, "none" for rows; "": the server does not tell
  bool text = false;            // it has a tokenizer
  int64_t session_bytes = 0;    // bytes of a session's state; 0: it has no sessions
  std::string no_sessions{};    // why it has no sessions
  bool generates = false;       // it takes Generate()
  int64_t replicas = 0;         // 0: the server does not tell
  int64_t threads = 0;          // that each replica has at most
  std::string processor{};      // what computes, as its maker calls it
  bool normalize = false;       // whether pooled vectors get the length one, by default
  std::string truncation{};     // of texts that are too long, by default
  int64_t max_text_tokens = 0;  // of a text; 0: as many as the model takes
  std::vector<std::string> prompts{};  // the names of those that requests may ask for
  std::string default_prompt{};        // the one for requests that ask for none
  std::vector<std::string>
      labels{};  // that its output `logits` scores; none: it classifies nothing
  std::string server_version{};
};

enum class HealthState : uint8_t { kUnknown, kServing, kNotServing, kServiceUnknown };

// Returns "UNKNOWN", "SERVING", "NOT_SERVING" or "SERVICE_UNKNOWN".
const char* Name(HealthState state);

}  // namespace linserve
