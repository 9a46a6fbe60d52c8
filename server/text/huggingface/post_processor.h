#pragma once

#include <nlohmann/json_fwd.hpp>

#include "absl/status/statusor.h"
#include "text/tokenizer.h"

namespace linserve {

// Says what the part `post_processor` of a tokenizer.json makes of one text.
struct PostProcessing {
  // INVALID_ARGUMENT names what is wrong, or not known: so it is with a template that has the text
  // not just once.
  static absl::StatusOr<PostProcessing> FromJson(const nlohmann::json& part);

  Marks marks;
  bool has_types = false;  // some token has a type other than 0
  // Says whether the places of tokens leave out the spaces in them. One that was put before the
  // text is none.
  bool trims_places = false;
  bool has_prefix = false;
};

}  // namespace linserve
