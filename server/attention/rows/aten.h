#pragma once

// This is the part of LibTorch that attention and models use. It is precompiled, since it costs
// seconds a file.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
