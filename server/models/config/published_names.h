#pragma once

#include <string>
#include <vector>

#include "models/config/model_config.h"

namespace linserve {

// Returns how the names in a model's published files become those of transformers' class, which may
// be those of the files, too. Source: conversion_mapping.py of transformers 5.24.0.
std::vector<CheckpointNames::Renamed> PublishedNames(const std::string& architecture);

}  // namespace linserve
