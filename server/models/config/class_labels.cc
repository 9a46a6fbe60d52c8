#include "models/config/class_labels.h"

#include <cstdint>
#include <utility>

namespace linserve {
namespace {

constexpr const char* kSingle = "single_label_classification";
constexpr const char* kMulti = "multi_label_classification";
constexpr const char* kRegression = "regression";

}  // namespace

ClassLabels ClassLabelsParam(Params& params) {
  constexpr int64_t kMostLabels = 1 << 16;
  constexpr int64_t kUsual = 2;
  ClassLabels labels;
  if (auto names = params.NumberedTexts("id2label", kMostLabels)) labels.names = *std::move(names);
  const int64_t named = labels.names.empty() ? kUsual : std::ssize(labels.names);
  const int64_t count = params.Positive("num_labels", named);
  if (count > kMostLabels) {
    params.Fail("num_labels", "an integer from 1 to " + std::to_string(kMostLabels));
  }
  if (std::ssize(labels.names) != count) {
    // The package forgets names that are not as many.
    labels.names.clear();
    for (int64_t i = 0; i < count; ++i) labels.names.push_back("LABEL_" + std::to_string(i));
  }
  params.Ignore("label2id");
  const std::string problem = params.Choice("problem_type", "", {kRegression, kSingle, kMulti});
  if (problem == kSingle && count == 1) {
    params.Fail("problem_type", "regression, or more labels than one to choose from");
  }
  if (problem == kMulti) labels.problem = ProblemType::kMultiLabel;
  if (problem == kRegression) labels.problem = ProblemType::kRegression;
  return labels;
}

}  // namespace linserve
