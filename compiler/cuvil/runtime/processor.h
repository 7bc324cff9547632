// Asks the x86-64 processor itself what it can do. Not __builtin_cpu_supports: that needs a table which some C runtimes, zig's
// among them, leave empty. Bits are those of Intel's manual, volume 2, CPUID, and volume 1, 13.3, "Enabling the XSAVE feature set".
#ifndef CUVIL_PROCESSOR_H
#define CUVIL_PROCESSOR_H

#include <cpuid.h>
#include <stdint.h>

#define CUVIL_OSXSAVE (1u << 27)      // the operating system lets programs read XCR0

// Whether all these bits are set: of ECX of leaf 1, of EBX of leaf 7, and of XCR0 (registers that the system saves for us).
static inline int32_t cuvil_processor_has(uint32_t leaf1_ecx, uint32_t leaf7_ebx, uint32_t xcr0) {
  uint32_t a, b, c, d;
  leaf1_ecx |= CUVIL_OSXSAVE;
  if (!__get_cpuid(1, &a, &b, &c, &d) || (c & leaf1_ecx) != leaf1_ecx) return 0;
  __asm__("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
  if ((a & xcr0) != xcr0) return 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & leaf7_ebx) == leaf7_ebx;
}

#endif
