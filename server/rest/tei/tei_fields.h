#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/sequence/truncation.h"
#include "rest/calls/rest_call.h"
#include "rest/json/json_members.h"
#include "serving/requests/embeddings_request.h"

namespace linserve {

// These functions read what requests of text-embeddings-inference have in common.

// Returns the model that a request is for: that of the header linserve-model, "" without it. A
// member `model` of the body goes before it. TEI has but one model.
std::string TeiModelOf(const RestCall& call);

// Reads one or more sequences. Returns EmptyList() if there is none.
absl::Status ReadInputs(JsonReader& reader, const std::string& name, int64_t most,
                        SequenceInput& sequences);
// Reads one or more texts in the same way.
absl::Status ReadTextList(JsonReader& reader, const std::string& name, int64_t most, Texts& texts);

// Returns how truncate, truncation_direction and prompt_name are read.
std::vector<JsonMember> TextMembers(JsonReader& reader, AskedTruncation& asked,
                                    std::string& prompt_name);
// Reads an object `parameters`, where the clients of some hubs put these members. It may have
// others.
JsonMember ParametersOf(JsonReader& reader, std::vector<JsonMember> members);

// Refuses what another path of TEI knows, unless it is null: else it would be dropped without a
// word.
JsonMember NotHere(JsonReader& reader, const char* name, const std::string& advice);

// Returns how the reading of a body ended that must have such a member.
absl::Status CheckThere(absl::Status status, bool there, const std::string& name);

}  // namespace linserve
