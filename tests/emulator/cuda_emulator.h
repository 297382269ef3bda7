// CUDA C on the CPU, for tests on machines without a GPU:
//
//   g++ -std=c++17 -x c++ -O2 -ffp-contract=off -shared -fPIC -include cuda_emulator.h module.cu
//
// Every CUDA thread of a block is a fiber; blocks run one after another. A fiber runs until it reaches a barrier or a
// warp operation (or, when asked, an atomic one), so the lanes of a warp are NOT in lock step: code that relies on
// implicit warp synchrony breaks here, as it may on a device. All state is static: one loaded library is one
// multiprocessor, and several cores are used by loading several copies (launch.py).
//
// Built plainly; with -fsanitize=address or undefined (memory errors, undefined arithmetic); with -fsanitize=thread,
// where each fiber is a thread and barriers are the only order between them (races); or counting its memory traffic.
#pragma once

#include <cmath>
#include <csetjmp>
#include <csignal>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <math.h>
#include <numeric>
#include <pthread.h>
#include <sys/mman.h>
#include <type_traits>
#include <utility>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__) && !defined(CUDA_EMULATOR_COUNTS)
#define EMULATOR_RACES 1
#include <sanitizer/tsan_interface.h>
extern "C" void AnnotateBenignRaceSized(const char*, int, const volatile void*, unsigned long, const char*);
#endif
#ifndef __x86_64__
#define EMULATOR_UCONTEXT 1
#endif
#ifdef EMULATOR_UCONTEXT
#include <ucontext.h>
#endif

#include "language.h"

#include "fibers.h"

#include "block.h"

#include "cluster.h"

#include "grid.h"

#include "warps.h"

#include "traffic.h"

#include "atomics.h"

#include "intrinsics.h"
