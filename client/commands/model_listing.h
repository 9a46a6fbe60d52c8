#pragma once

#include <string>
#include <vector>

#include "client/library/calls.h"

namespace linserve {

// Lists models in a table for people, one row a model.
std::string ModelsTable(const std::vector<ModelDescription>& models);

// Lists models in a JSON array with everything that the server told.
std::string ModelsJson(const std::vector<ModelDescription>& models);

}  // namespace linserve
