/* What a compiled function tells the C ABI about itself. artifact/abi.py writes one `cuvil_program` for each library. */
#ifndef CUVIL_RUNTIME_ABI_H
#define CUVIL_RUNTIME_ABI_H

#include <stddef.h>
#include <stdint.h>

/* Of DLPack 0.8 and later, which never changes these (https://dmlc.github.io/dlpack). */
typedef struct { int32_t device_type, device_id; } DLDevice;
typedef struct { uint8_t code, bits; uint16_t lanes; } DLDataType;
typedef struct {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
} DLTensor;

typedef struct cuvil_model cuvil_model;

/* One input, output or parameter. bytes: of the whole tensor; dtype: as people read it, and as safetensors says it. */
typedef struct {
  const char* name;
  const char* dtype;
  const char* stored;
  uint8_t code, bits;
  int32_t rank;
  const int64_t* shape;
  uint64_t bytes;
} cuvil_tensor;

typedef struct {
  const char* name;
  const char* manifest;
  int32_t inputs, outputs, parameters;
  const cuvil_tensor *input, *output, *parameter;
  size_t scratch;                       /* bytes one call needs for values between kernels */
  size_t packed;                        /* bytes of parameters in the order kernels read them, made once by cuvil_load */
  const char* const* checks;            /* what a failed check of the kernels means: result r is checks[r - 1] */
  int32_t check_count;
  const char* machine;                  /* the kind of processor it was compiled for */
  int32_t (*runs_here)(void);           /* whether this processor is of that kind */
} cuvil_program;

extern const cuvil_program cuvil_this_program;

enum {
  CUVIL_OK = 0, CUVIL_ERROR_NULL = 1, CUVIL_ERROR_COUNT = 2, CUVIL_ERROR_RANK = 3, CUVIL_ERROR_DTYPE = 4, CUVIL_ERROR_SHAPE = 5,
  CUVIL_ERROR_STRIDES = 6, CUVIL_ERROR_ALIGNMENT = 7, CUVIL_ERROR_DEVICE = 8, CUVIL_ERROR_MEMORY = 9, CUVIL_ERROR_PARAMETERS = 10,
  CUVIL_ERROR_VALUE = 11, CUVIL_ERROR_MACHINE = 12
};

#define CUVIL_HIDDEN __attribute__((visibility("hidden")))
#define CUVIL_EXPORT __attribute__((visibility("default")))

/* Sets the message of cuvil_last_error for this thread and gives back the code. */
CUVIL_HIDDEN int32_t cuvil_fail(int32_t code, const char* format, ...) __attribute__((format(printf, 2, 3)));

/* parameters.c: maps the file and points `data` at each parameter of the program. *mapped and *size are to be unmapped. */
CUVIL_HIDDEN int32_t cuvil_map_parameters(const char* path, void** data, void** mapped, size_t* size);

/* threads.c */
CUVIL_HIDDEN int32_t cuvil_thread_count(int32_t threads);

#endif
