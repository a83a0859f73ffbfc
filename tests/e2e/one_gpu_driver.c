// SPDX-License-Identifier: Apache-2.0
// A libnvidia-ml.so.1 of the poorest kind: one GPU, a handful of functions, every other symbol missing.
#include <string.h>

typedef int nvmlReturn_t;
typedef struct { unsigned int gpu, memory; } nvmlUtilization_t;

static int board;

nvmlReturn_t nvmlInitWithFlags(unsigned int flags) { (void)flags; return 0; }
nvmlReturn_t nvmlInit_v2(void) { return 0; }
nvmlReturn_t nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(nvmlReturn_t code) { (void)code; return "an error"; }

static nvmlReturn_t text(char *to, unsigned int size, const char *from) {
  strncpy(to, from, size);
  return 0;
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *to, unsigned int size) { return text(to, size, "570.124.06"); }
nvmlReturn_t nvmlSystemGetNVMLVersion(char *to, unsigned int size) { return text(to, size, "12.570.124.06"); }
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count) { *count = 1; return 0; }
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device) {
  if (index != 0) return 2;
  *device = &board;
  return 0;
}
nvmlReturn_t nvmlDeviceGetUUID(void *device, char *to, unsigned int size) {
  (void)device;
  return text(to, size, "GPU-0c0ffee0-0000-0000-0000-000000000001");
}
nvmlReturn_t nvmlDeviceGetName(void *device, char *to, unsigned int size) {
  (void)device;
  return text(to, size, "Plain GPU");
}
nvmlReturn_t nvmlDeviceGetUtilizationRates(void *device, nvmlUtilization_t *rates) {
  (void)device;
  rates->gpu = 37;
  rates->memory = 12;
  return 0;
}
nvmlReturn_t nvmlDeviceGetPowerUsage(void *device, unsigned int *milliwatts) {
  (void)device;
  *milliwatts = 123456;
  return 0;
}
