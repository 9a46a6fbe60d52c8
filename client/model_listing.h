#pragma once

#include <string>
#include <vector>

#include "client/calls.h"

namespace linserve {

// One row a model, for people.
std::string ModelsTable(const std::vector<ModelDescription>& models);

// A JSON array with everything that the server told.
std::string ModelsJson(const std::vector<ModelDescription>& models);

}  // namespace linserve
