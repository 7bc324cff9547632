/* Maps a .safetensors file and finds the parameters of the program in it, without copying one.
 *
 * The file is data from outside: every length and offset is checked against the size of the file before it is used. The
 * format is 8 bytes of little-endian header length, a JSON object, and the data (https://github.com/huggingface/safetensors).
 * Of JSON this reads what the format allows: one object of objects, with strings and non-negative integers in it.
 */
#include "abi.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct { const char *at, *end; } reader;
typedef struct { char name[1024]; char dtype[16]; int32_t rank; int64_t shape[64]; uint64_t begin, end; } entry;

static void space(reader* r) {
  while (r->at < r->end && (*r->at == ' ' || *r->at == '\n' || *r->at == '\t' || *r->at == '\r')) r->at++;
}

static bool take(reader* r, char c) {
  space(r);
  if (r->at >= r->end || *r->at != c) return false;
  r->at++;
  return true;
}

static int hex(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1; }

/* A string into `out` (cut at its size, always ended). \u escapes of the first plane become UTF-8. */
static bool string(reader* r, char* out, size_t size) {
  size_t used = 0;
  if (!take(r, '"')) return false;
  while (r->at < r->end && *r->at != '"') {
    char bytes[4] = {*r->at++, 0, 0, 0};
    size_t n = 1;
    if (bytes[0] == '\\') {
      if (r->at >= r->end) return false;
      char c = *r->at++;
      if (c == 'u') {
        unsigned code = 0;
        for (int i = 0; i < 4; i++) {
          int digit = r->at < r->end ? hex(*r->at++) : -1;
          if (digit < 0) return false;
          code = code * 16 + (unsigned)digit;
        }
        if (code < 0x80) bytes[0] = (char)code;
        else if (code < 0x800) bytes[0] = (char)(0xC0 | code >> 6), bytes[1] = (char)(0x80 | (code & 63)), n = 2;
        else bytes[0] = (char)(0xE0 | code >> 12), bytes[1] = (char)(0x80 | (code >> 6 & 63)), bytes[2] = (char)(0x80 | (code & 63)), n = 3;
      } else {
        bytes[0] = c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c == 'b' ? '\b' : c == 'f' ? '\f' : c;
      }
    }
    for (size_t i = 0; i < n; i++)
      if (used + 1 < size) out[used++] = bytes[i];
  }
  out[used] = 0;
  return take(r, '"');
}

static bool number(reader* r, uint64_t* out) {
  space(r);
  if (r->at >= r->end || *r->at < '0' || *r->at > '9') return false;
  for (*out = 0; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++) {
    if (*out > (UINT64_MAX - 9) / 10) return false;
    *out = *out * 10 + (uint64_t)(*r->at - '0');
  }
  return true;
}

static bool numbers(reader* r, uint64_t* out, int limit, int32_t* count) {
  *count = 0;
  if (!take(r, '[')) return false;
  if (take(r, ']')) return true;
  do {
    if (*count >= limit || !number(r, &out[(*count)++])) return false;
  } while (take(r, ','));
  return take(r, ']');
}

/* {"key": "text", ...}: the metadata, which nothing here needs. */
static bool skip_metadata(reader* r) {
  char text[8];
  if (!take(r, '{')) return false;
  if (take(r, '}')) return true;
  do {
    if (!string(r, text, sizeof text) || !take(r, ':') || !string(r, text, sizeof text)) return false;
  } while (take(r, ','));
  return take(r, '}');
}

static bool tensor(reader* r, entry* e) {
  char key[32];
  uint64_t values[64];
  int32_t count, found = 0;
  if (!take(r, '{')) return false;
  do {
    if (!string(r, key, sizeof key) || !take(r, ':')) return false;
    if (!strcmp(key, "dtype")) {
      if (!string(r, e->dtype, sizeof e->dtype)) return false;
    } else if (!strcmp(key, "shape")) {
      if (!numbers(r, values, 64, &e->rank)) return false;
      for (int i = 0; i < e->rank; i++) e->shape[i] = (int64_t)values[i];
    } else if (!strcmp(key, "data_offsets")) {
      if (!numbers(r, values, 2, &count) || count != 2) return false;
      e->begin = values[0], e->end = values[1];
    } else {
      return false;
    }
    found++;
  } while (take(r, ','));
  return found == 3 && take(r, '}');
}

static int32_t place(const entry* e, const char* path, char* data, uint64_t size, void** pointers) {
  const cuvil_program* program = &cuvil_this_program;
  for (int32_t i = 0; i < program->parameters; i++) {
    const cuvil_tensor* want = &program->parameter[i];
    if (strcmp(want->name, e->name)) continue;
    bool same = !strcmp(want->stored, e->dtype) && want->rank == e->rank;
    for (int32_t axis = 0; same && axis < want->rank; axis++) same = want->shape[axis] == e->shape[axis];
    if (!same)
      return cuvil_fail(CUVIL_ERROR_PARAMETERS, "%s: parameter %s is %s of rank %d, expected %s as the library was compiled for",
                        path, e->name, e->dtype, e->rank, want->dtype);
    if (e->end < e->begin || e->end > size || e->end - e->begin != want->bytes)
      return cuvil_fail(CUVIL_ERROR_PARAMETERS, "%s: parameter %s lies outside the file", path, e->name);
    if ((uintptr_t)(data + e->begin) % (want->bits / 8))
      return cuvil_fail(CUVIL_ERROR_PARAMETERS, "%s: parameter %s is not aligned to its elements; write the file with m.save", path, e->name);
    pointers[i] = data + e->begin;
    return CUVIL_OK;
  }
  return CUVIL_OK;                                      /* a tensor that this function does not use */
}

static int32_t read_header(const char* path, char* file, size_t size, void** pointers) {
  uint64_t length = 0;
  for (int i = 7; i >= 0; i--) length = length << 8 | (unsigned char)file[i];
  if (length > size - 8) return cuvil_fail(CUVIL_ERROR_PARAMETERS, "%s: not a .safetensors file (header of %llu bytes in %zu)", path,
                                           (unsigned long long)length, size);
  reader r = {file + 8, file + 8 + length};
  char* data = file + 8 + length;
  entry* e = calloc(1, sizeof *e);
  if (!e) return cuvil_fail(CUVIL_ERROR_MEMORY, "%s: no memory to read it", path);
  int32_t failed = CUVIL_OK;
  bool right = take(&r, '{');
  if (right && !take(&r, '}')) {
    do {
      right = string(&r, e->name, sizeof e->name) && take(&r, ':');
      right = right && (strcmp(e->name, "__metadata__") ? tensor(&r, e) : skip_metadata(&r));
      if (right && strcmp(e->name, "__metadata__")) failed = place(e, path, data, size - 8 - length, pointers);
    } while (right && !failed && take(&r, ','));
    right = right && (failed || take(&r, '}'));
  }
  free(e);
  if (!failed && !right) return cuvil_fail(CUVIL_ERROR_PARAMETERS, "%s: not a .safetensors file (broken header)", path);
  return failed;
}

CUVIL_HIDDEN int32_t cuvil_map_parameters(const char* path, void** pointers, void** mapped, size_t* size) {
  const cuvil_program* program = &cuvil_this_program;
  struct stat info;
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return cuvil_fail(CUVIL_ERROR_PARAMETERS, "%s: %s", path, strerror(errno));
  if (fstat(file, &info) || !S_ISREG(info.st_mode) || info.st_size < 8) {
    close(file);
    return cuvil_fail(CUVIL_ERROR_PARAMETERS, "%s: not a .safetensors file", path);
  }
  void* start = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  if (start == MAP_FAILED) return cuvil_fail(CUVIL_ERROR_PARAMETERS, "%s: %s", path, strerror(errno));
  *mapped = start, *size = (size_t)info.st_size;
  int32_t failed = read_header(path, start, *size, pointers);
  for (int32_t i = 0; !failed && i < program->parameters; i++)
    if (!pointers[i] && program->parameter[i].bytes)
      failed = cuvil_fail(CUVIL_ERROR_PARAMETERS, "%s: there is no parameter %s in it", path, program->parameter[i].name);
  return failed;
}
