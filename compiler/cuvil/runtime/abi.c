/* The C ABI of a compiled library: everything a caller hands over is checked before a kernel sees it.
 *
 * A call allocates nothing but its scratch memory, which each thread keeps and reuses. Two threads may run one model at the
 * same time. Errors are a code and a message; nothing here prints or aborts.
 */
#include "abi.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct cuvil_model {
  int32_t threads;
  void** parameters;
  void* mapped;
  size_t mapped_size;
  void* packed;
};

extern int32_t cuvil_kernel_main(void** inputs, void** outputs, void** parameters, const int64_t* dims, void* scratch,
                                 int32_t threads) CUVIL_HIDDEN;
/* Only where there is something to pack. */
extern int32_t cuvil_kernel_pack(void** parameters, void* packed, int32_t threads) CUVIL_HIDDEN __attribute__((weak));

enum { MAX_TENSORS = 1024, ALIGNMENT = 64 };

static const cuvil_program* const program = &cuvil_this_program;

/* --- errors ------------------------------------------------------------------------------------------------------- */

static __thread char message[512];

CUVIL_HIDDEN int32_t cuvil_fail(int32_t code, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  return code;
}

CUVIL_EXPORT const char* cuvil_last_error(void) { return message; }

CUVIL_EXPORT const char* cuvil_manifest(void) { return program->manifest; }

/* --- scratch memory of a thread ------------------------------------------------------------------------------------ */

static pthread_key_t scratch_key;
static pthread_once_t scratch_once = PTHREAD_ONCE_INIT;
static __thread void* scratch_of_thread;
static __thread size_t scratch_size;

static void make_scratch_key(void) { pthread_key_create(&scratch_key, free); }

static void* scratch(size_t size) {
  if (size <= scratch_size) return scratch_of_thread;
  pthread_once(&scratch_once, make_scratch_key);
  free(scratch_of_thread);
  scratch_size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  if (posix_memalign(&scratch_of_thread, ALIGNMENT, scratch_size)) scratch_of_thread = NULL, scratch_size = 0;
  pthread_setspecific(scratch_key, scratch_of_thread);
  return scratch_of_thread;
}

/* --- models -------------------------------------------------------------------------------------------------------- */

static cuvil_model plain = {0, NULL, NULL, 0, NULL};   /* of a library without parameters, for infer */
static cuvil_model* latest;                            /* of one with parameters: the model infer uses */

CUVIL_EXPORT void cuvil_free(cuvil_model* model) {
  if (!model) return;
  cuvil_model* expected = model;
  __atomic_compare_exchange_n(&latest, &expected, NULL, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
  if (model->mapped) munmap(model->mapped, model->mapped_size);
  free(model->packed);
  free(model->parameters);
  free(model);
}

static int32_t wrong_machine(void) {
  if (program->runs_here()) return CUVIL_OK;
  return cuvil_fail(CUVIL_ERROR_MACHINE, "%s was compiled for %s, which this processor is not", program->name, program->machine);
}

CUVIL_EXPORT cuvil_model* cuvil_load(const char* path, int32_t threads) {
  message[0] = 0;
  if (wrong_machine()) return NULL;
  cuvil_model* model = calloc(1, sizeof *model);
  if (!model) {
    cuvil_fail(CUVIL_ERROR_MEMORY, "%s: no memory for a model", program->name);
    return NULL;
  }
  model->threads = cuvil_thread_count(threads);
  if (program->parameters) {
    if (!path) {
      cuvil_fail(CUVIL_ERROR_PARAMETERS, "%s has %d parameters; cuvil_load needs the path of its .safetensors file",
                 program->name, program->parameters);
      cuvil_free(model);
      return NULL;
    }
    model->parameters = calloc((size_t)program->parameters + 1, sizeof(void*));
    if (!model->parameters) {
      cuvil_fail(CUVIL_ERROR_MEMORY, "%s: no memory for a model", program->name);
      cuvil_free(model);
      return NULL;
    }
    if (cuvil_map_parameters(path, model->parameters, &model->mapped, &model->mapped_size)) {
      cuvil_free(model);
      return NULL;
    }
    if (program->packed && cuvil_kernel_pack) {
      if (posix_memalign(&model->packed, ALIGNMENT, (program->packed + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT)) {
        cuvil_fail(CUVIL_ERROR_MEMORY, "%s: no memory for %zu bytes of packed parameters", program->name, program->packed);
        cuvil_free(model);
        return NULL;
      }
      model->parameters[program->parameters] = model->packed;
      if (cuvil_kernel_pack(model->parameters, model->packed, model->threads)) {
        cuvil_fail(CUVIL_ERROR_MEMORY, "%s: the parameters could not be packed", program->name);
        cuvil_free(model);
        return NULL;
      }
    }
    __atomic_store_n(&latest, model, __ATOMIC_RELEASE);
  }
  return model;
}

/* --- what callers hand over ---------------------------------------------------------------------------------------- */

static int shape_text(char* text, size_t size, const int64_t* shape, int32_t rank) {
  size_t used = (size_t)snprintf(text, size, "[");
  for (int32_t i = 0; i < rank && i < 16 && used + 24 < size; i++)
    used += (size_t)snprintf(text + used, size - used, i ? ", %lld" : "%lld", (long long)shape[i]);
  snprintf(text + used, size - used, "]");
  return 0;
}

static const char* const CODES[] = {"int", "uint", "float", "handle", "bfloat", "complex", "bool"};

static int32_t check(const cuvil_tensor* want, const DLTensor* got, const char* role, void** data) {
  char a[256], b[256];
  if (got->dtype.code != want->code || got->dtype.bits != want->bits || got->dtype.lanes != 1)
    return cuvil_fail(CUVIL_ERROR_DTYPE, "%s %s: dtype is %s%d (code %d, lanes %d), expected %s", role, want->name,
                      got->dtype.code < 7 ? CODES[got->dtype.code] : "unknown", got->dtype.bits, got->dtype.code, got->dtype.lanes,
                      want->dtype);
  if (got->ndim != want->rank)
    return cuvil_fail(CUVIL_ERROR_RANK, "%s %s: rank is %d, expected %d", role, want->name, got->ndim, want->rank);
  if (want->rank && !got->shape) return cuvil_fail(CUVIL_ERROR_NULL, "%s %s: shape is NULL", role, want->name);
  for (int32_t i = 0; i < want->rank; i++)
    if (got->shape[i] != want->shape[i]) {
      shape_text(a, sizeof a, got->shape, want->rank);
      shape_text(b, sizeof b, want->shape, want->rank);
      return cuvil_fail(CUVIL_ERROR_SHAPE, "%s %s: shape is %s, expected %s", role, want->name, a, b);
    }
  if (got->device.device_type != 1)
    return cuvil_fail(CUVIL_ERROR_DEVICE, "%s %s: device type is %d, expected 1 (CPU)", role, want->name, got->device.device_type);
  if (got->strides && want->bytes) {
    int64_t expected = 1;
    for (int32_t i = want->rank - 1; i >= 0; i--) {
      if (want->shape[i] != 1 && got->strides[i] != expected) {
        shape_text(a, sizeof a, got->strides, want->rank);
        return cuvil_fail(CUVIL_ERROR_STRIDES, "%s %s: strides are %s, expected a contiguous row-major tensor", role, want->name, a);
      }
      expected *= want->shape[i];
    }
  }
  if (!got->data && want->bytes) return cuvil_fail(CUVIL_ERROR_NULL, "%s %s: data is NULL", role, want->name);
  char* start = (char*)got->data + got->byte_offset;
  if (want->bytes && (uintptr_t)start % (want->bits / 8))
    return cuvil_fail(CUVIL_ERROR_ALIGNMENT, "%s %s: data at %p is not aligned to its %d-byte elements", role, want->name,
                      (void*)start, want->bits / 8);
  *data = start;
  return CUVIL_OK;
}

/* The checked call: pointers to contiguous data, in signature order. Used by infer and by cu.load's fast path. */
CUVIL_EXPORT int32_t cuvil_call(cuvil_model* model, void** inputs, void** outputs) {
  if (!model->threads) model->threads = cuvil_thread_count(0);
  void* memory = scratch(program->scratch);
  if (!memory && program->scratch)
    return cuvil_fail(CUVIL_ERROR_MEMORY, "%s: no memory for %zu bytes of scratch", program->name, program->scratch);
  int32_t failed = cuvil_kernel_main(inputs, outputs, model->parameters, NULL, memory, model->threads);
  if (failed)
    return cuvil_fail(CUVIL_ERROR_VALUE, "%s: %s", program->name,
                      failed > 0 && failed <= program->check_count ? program->checks[failed - 1] : "a value is out of range");
  return CUVIL_OK;
}

CUVIL_EXPORT int32_t cuvil_run(cuvil_model* model, const DLTensor* inputs, int32_t n_in, DLTensor* outputs, int32_t n_out) {
  void* in[MAX_TENSORS];
  void* out[MAX_TENSORS];
  message[0] = 0;
  if (!model) return cuvil_fail(CUVIL_ERROR_NULL, "%s: model is NULL; make one with cuvil_load", program->name);
  if (n_in != program->inputs || n_out != program->outputs)
    return cuvil_fail(CUVIL_ERROR_COUNT, "%s: %d inputs and %d outputs given, expected %d and %d", program->name, n_in, n_out,
                      program->inputs, program->outputs);
  if ((n_in && !inputs) || (n_out && !outputs))
    return cuvil_fail(CUVIL_ERROR_NULL, "%s: the array of %s is NULL", program->name, inputs || !n_in ? "outputs" : "inputs");
  for (int32_t i = 0; i < n_in; i++) {
    int32_t failed = check(&program->input[i], &inputs[i], "input", &in[i]);
    if (failed) return failed;
  }
  for (int32_t i = 0; i < n_out; i++) {
    int32_t failed = check(&program->output[i], &outputs[i], "output", &out[i]);
    if (failed) return failed;
    for (int32_t j = 0; j < n_in; j++)
      if ((char*)out[i] < (char*)in[j] + program->input[j].bytes && (char*)in[j] < (char*)out[i] + program->output[i].bytes)
        return cuvil_fail(CUVIL_ERROR_ALIGNMENT, "output %s overlaps input %s; outputs need memory of their own",
                          program->output[i].name, program->input[j].name);
  }
  return cuvil_call(model, in, out);
}

/* What the generated `infer` calls. Without a model (parameters never loaded) it leaves the outputs alone. */
CUVIL_HIDDEN void cuvil_infer(void** inputs, void** outputs) {
  message[0] = 0;
  if (wrong_machine()) return;
  for (int32_t i = 0; i < program->inputs; i++)
    if (!inputs[i] && program->input[i].bytes) {
      cuvil_fail(CUVIL_ERROR_NULL, "input %s: data is NULL", program->input[i].name);
      return;
    }
  for (int32_t i = 0; i < program->outputs; i++)
    if (!outputs[i] && program->output[i].bytes) {
      cuvil_fail(CUVIL_ERROR_NULL, "output %s: data is NULL", program->output[i].name);
      return;
    }
  cuvil_model* model = program->parameters ? __atomic_load_n(&latest, __ATOMIC_ACQUIRE) : &plain;
  if (!model) {
    cuvil_fail(CUVIL_ERROR_PARAMETERS, "%s has parameters; call cuvil_load with its .safetensors file before infer", program->name);
    return;
  }
  cuvil_call(model, inputs, outputs);
}
