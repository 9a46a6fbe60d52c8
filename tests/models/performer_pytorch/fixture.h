#pragma once

#include <cstdint>
#include <string>

#include "models/model_fixture.h"
#include "models/random_weights.h"

namespace linserve {

inline constexpr const char* kPerformer = "performer_pytorch.Performer";
inline constexpr const char* kPerformerLanguageModel = "performer_pytorch.PerformerLM";

// Gives the arguments that the cases of these tests have in common, and `more`.
inline std::string PerformerArguments(const std::string& more) {
  return R"({"dim": 12, "depth": 2, "heads": 3, "local_window_size": 8)" +
         (more.empty() ? more : ", " + more) + "}";
}

inline std::string PerformerStack(const std::string& more) {
  return PerformerArguments(more.find("dim_head") == std::string::npos
                                ? R"("dim_head": 4)" + (more.empty() ? more : ", " + more)
                                : more);
}

inline std::string PerformerModel(const std::string& more) {
  return PerformerStack(R"("num_tokens": 30, "max_seq_len": 208)" +
                        (more.empty() ? more : ", " + more));
}

}  // namespace linserve
