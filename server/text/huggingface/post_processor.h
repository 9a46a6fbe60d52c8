#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "absl/status/statusor.h"
#include "text/tokenizer.h"

namespace linserve {

// Says what the part `post_processor` of a tokenizer.json makes of one text, and of two.
struct PostProcessing {
  // INVALID_ARGUMENT names what is wrong, or not known: so it is with a template that has the text
  // not just once.
  static absl::StatusOr<PostProcessing> FromJson(const nlohmann::json& part);
  // These are the forms of the package's BertProcessing and RobertaProcessing, but for the places.
  static PostProcessing Bert(int64_t before, int64_t after);
  static PostProcessing Roberta(int64_t before, int64_t after);
  // Is that of T5, whose texts have one mark behind each.
  static PostProcessing Behind(int64_t after);

  Marks marks;
  std::optional<PairTemplate> pair;  // nullopt: it is not said, or not with each text just once
  bool has_types = false;            // some token of one text has a type other than 0
  // Says whether the places of tokens leave out the spaces in them. One that was put before the
  // text is none.
  bool trims_places = false;
  bool has_prefix = false;
};

}  // namespace linserve
