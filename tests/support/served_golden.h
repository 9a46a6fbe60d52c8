#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "client/library/embedding_client.h"
#include "support/golden_case.h"
#include "support/test_files.h"

namespace linserve {

// Makes the cases the models of a repository.
inline void LinkCases(const std::vector<GoldenCase>& cases, const TempDir& repository) {
  for (const GoldenCase& golden : cases) {
    std::filesystem::create_directory_symlink(std::filesystem::canonical(golden.directory()),
                                              repository.File(golden.name()));
  }
}

// Embeds all sequences of a case in one request.
inline std::vector<SequenceResult> Embed(EmbeddingClient& client, const GoldenCase& golden) {
  EmbedCall call;
  call.model = golden.name();
  call.options.outputs = golden.outputs();
  for (size_t i = 0; i < golden.sequences(); ++i) {
    call.sequences.push_back({std::to_string(i), golden.Inputs(i)});
  }
  auto results = client.Embed(call);
  EXPECT_TRUE(results.ok()) << results.status();
  return results.ok() ? *std::move(results) : std::vector<SequenceResult>();
}

}  // namespace linserve
