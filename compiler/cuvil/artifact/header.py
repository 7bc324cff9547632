"""The C header of a compiled function: the ABI that every library has, and this one's signature."""
from __future__ import annotations

from .signature import Signature, Slot

_COMMON = """\
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Tensors are those of DLPack. Include <dlpack/dlpack.h> before this file to use its definitions instead of these. */
#ifndef DLPACK_DLPACK_H_
#ifndef CUVIL_DLPACK_TYPES
#define CUVIL_DLPACK_TYPES
enum { kDLCPU = 1 };
enum { kDLInt = 0, kDLUInt = 1, kDLFloat = 2, kDLBfloat = 4, kDLBool = 6 };
typedef struct { int32_t device_type; int32_t device_id; } DLDevice;
typedef struct { uint8_t code; uint8_t bits; uint16_t lanes; } DLDataType;
typedef struct {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;      /* NULL: contiguous, row by row */
  uint64_t byte_offset;
} DLTensor;
#endif
#endif

#ifndef CUVIL_TYPES
#define CUVIL_TYPES
typedef struct cuvil_model cuvil_model;
enum {
  CUVIL_OK = 0,
  CUVIL_ERROR_NULL = 1,        /* a pointer is NULL */
  CUVIL_ERROR_COUNT = 2,       /* too few or too many inputs or outputs */
  CUVIL_ERROR_RANK = 3,
  CUVIL_ERROR_DTYPE = 4,
  CUVIL_ERROR_SHAPE = 5,
  CUVIL_ERROR_STRIDES = 6,     /* not contiguous */
  CUVIL_ERROR_ALIGNMENT = 7,   /* not aligned to its elements, or an output overlaps an input */
  CUVIL_ERROR_DEVICE = 8,      /* not in CPU memory */
  CUVIL_ERROR_MEMORY = 9,
  CUVIL_ERROR_PARAMETERS = 10, /* the .safetensors file is missing, broken, or of another model */
  CUVIL_ERROR_VALUE = 11,      /* a value is out of range, say an index of a gather */
  CUVIL_ERROR_MACHINE = 12     /* compiled for another kind of processor */
};
#endif

/* What was compiled, as JSON: the same text as the .json file. */
const char* cuvil_manifest(void);

/* A model ready to run, NULL on failure. params_path: its .safetensors file, NULL if it has no parameters; it is mapped, not
   copied. num_threads: 0 for all processors. */
cuvil_model* cuvil_load(const char* params_path, int32_t num_threads);

/* Runs the model: 0, or an error code above; then cuvil_last_error says what was wrong and outputs are not to be used.
   Several threads may run one model at the same time. */
int32_t cuvil_run(cuvil_model* model, const DLTensor* inputs, int32_t n_in, DLTensor* outputs, int32_t n_out);

/* The message of this thread's last failed call, "" after a success. */
const char* cuvil_last_error(void);

void cuvil_free(cuvil_model* model);
"""


def header(signature: Signature) -> str:
    """The text of `<name>.h`."""
    guard = f"CUVIL_{signature.c_name.upper()}_H"
    return (f"/* {signature.name}, compiled by Cuvil.\n *\n{_slots('input', signature.inputs)}{_slots('output', signature.outputs)}"
            f" */\n#ifndef {guard}\n#define {guard}\n\n{_COMMON}\n{_infer_comment(signature)}{infer_prototype(signature)};\n\n"
            f"#ifdef __cplusplus\n}}\n#endif\n\n#endif\n")


def infer_prototype(signature: Signature) -> str:
    arguments = [f"const {slot.c_type}* {slot.c_name}" for slot in signature.inputs]
    arguments += [f"{slot.c_type}* {slot.c_name}" for slot in signature.outputs]
    return f"void infer({', '.join(arguments) or 'void'})"


def _infer_comment(signature: Signature) -> str:
    model = ("It runs the model that cuvil_load made last; without one it sets cuvil_last_error and leaves the outputs alone."
             if signature.parameters else "Sizes are as above and not checked; cuvil_last_error is \"\" after a success.")
    return f"/* The same with plain pointers to contiguous data. {model} */\n"


def _slots(role: str, slots: tuple[Slot, ...]) -> str:
    return "".join(f" * {role:6} {slot.c_name}: {slot.type}\n" for slot in slots)
