/* The thread pool of a compiled library: cuvil_parallel_for runs parts of a range on several threads and waits.
 *
 * The range is cut into one part per thread, the same way for the same n and thread count, and no result may depend on
 * where the cuts are: kernels fold in a fixed order inside one index. Workers spin for a short while after a job, so that
 * the kernels of one call find them awake, then sleep. One job runs at a time; a caller that finds the pool taken (two
 * models run at once, a kernel calls in) does its whole range itself. Workers live as long as the process.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef CUVIL_HIDDEN
#define CUVIL_HIDDEN __attribute__((visibility("hidden")))     /* a library's own pool is nobody else's */
#endif

typedef void (*cuvil_body)(void* arg, int64_t begin, int64_t end, int64_t thread);

/* Kernels keep rows and tiles on the stack; some C libraries give threads only 128 KiB by default. */
enum { MAX_THREADS = 256, SPINS = 20000, STACK = 1 << 20 };

static struct {
  pthread_mutex_t busy;              /* held by the caller whose job runs */
  pthread_mutex_t lock;              /* guards sleeping and waking */
  pthread_cond_t wake;
  int started;                       /* workers there are, without the caller */
  int pid;                           /* the process that started them: a fork has none */
  cuvil_body body;
  void* arg;
  int64_t n;
  int parts;
  atomic_uint job;                   /* counts jobs; a change is the signal */
  atomic_int left;                   /* parts not done yet, the caller's excluded */
} pool = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, 0, 0, 0, 0, 0, 0};

static inline void pause_cpu(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

static void run_part(int part) {
  int64_t begin = pool.n * part / pool.parts, end = pool.n * (part + 1) / pool.parts;
  if (begin < end) pool.body(pool.arg, begin, end, part);
}

typedef struct { int index; unsigned seen; } worker_start;

static void* worker(void* start) {
  int index = ((worker_start*)start)->index;
  unsigned seen = ((worker_start*)start)->seen;
  free(start);
  for (;;) {
    for (int spin = 0; spin < SPINS && atomic_load_explicit(&pool.job, memory_order_acquire) == seen; spin++) pause_cpu();
    if (atomic_load_explicit(&pool.job, memory_order_acquire) == seen) {
      pthread_mutex_lock(&pool.lock);
      while (atomic_load(&pool.job) == seen) pthread_cond_wait(&pool.wake, &pool.lock);
      pthread_mutex_unlock(&pool.lock);
    }
    /* The caller waits for every worker before the next job, so job counts are never skipped. */
    seen = atomic_load_explicit(&pool.job, memory_order_acquire);
    if (index < pool.parts) run_part(index);
    atomic_fetch_sub_explicit(&pool.left, 1, memory_order_release);
  }
  return NULL;
}

static void start_workers(int wanted) {
  if (pool.pid != (int)getpid()) {
    pool.started = 0;
    pool.pid = (int)getpid();
  }
  pthread_attr_t attributes;
  if (pool.started >= wanted || pthread_attr_init(&attributes)) return;
  pthread_attr_setstacksize(&attributes, STACK);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  while (pool.started < wanted) {
    worker_start* start = malloc(sizeof *start);
    pthread_t thread;
    if (!start) break;
    start->index = pool.started + 1;
    start->seen = atomic_load(&pool.job);
    if (pthread_create(&thread, &attributes, worker, start)) {
      free(start);
      break;
    }
    pool.started++;
  }
  pthread_attr_destroy(&attributes);
}

/* How many threads a request for `threads` means: 0 is all processors this process may use. */
CUVIL_HIDDEN int32_t cuvil_thread_count(int32_t threads) {
  if (threads <= 0) {
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    threads = online > 0 ? (int32_t)online : 1;
  }
  return threads < MAX_THREADS ? threads : MAX_THREADS;
}

/* --- memory of a thread -------------------------------------------------------------------------------------------- */

typedef struct { size_t size; void* block; } thread_memory;

static pthread_key_t memory_key;
static pthread_once_t memory_once = PTHREAD_ONCE_INIT;
static __thread thread_memory memory;

static void make_memory_key(void) { pthread_key_create(&memory_key, free); }

/* At least `size` bytes for the calling thread, aligned to 64, kept and reused until the thread ends. NULL: there are none. */
CUVIL_HIDDEN void* cuvil_thread_memory(int64_t size) {
  if (size < 64) size = 64;                      /* of no bytes too there is a block: only NULL means that there are none */
  if ((size_t)size <= memory.size) return memory.block;
  pthread_once(&memory_once, make_memory_key);
  free(memory.block);
  memory.size = 0;
  if (posix_memalign(&memory.block, 64, (size_t)size)) memory.block = NULL;
  else memory.size = (size_t)size;
  pthread_setspecific(memory_key, memory.block);
  return memory.block;
}

/* --- jobs ---------------------------------------------------------------------------------------------------------- */

/* body(arg, begin, end, thread) for parts that together are 0..n; thread < threads. Returns when all are done. */
CUVIL_HIDDEN void cuvil_parallel_for(cuvil_body body, void* arg, int64_t n, int32_t threads) {
  if (threads > MAX_THREADS) threads = MAX_THREADS;
  if (threads > n) threads = (int32_t)n;
  if (threads <= 1 || pthread_mutex_trylock(&pool.busy)) {
    if (n > 0) body(arg, 0, n, 0);
    return;
  }
  start_workers(threads - 1);
  if (threads > pool.started + 1) threads = pool.started + 1;
  pool.body = body, pool.arg = arg, pool.n = n, pool.parts = threads;
  atomic_store(&pool.left, pool.started);
  pthread_mutex_lock(&pool.lock);
  atomic_fetch_add_explicit(&pool.job, 1, memory_order_release);
  pthread_cond_broadcast(&pool.wake);
  pthread_mutex_unlock(&pool.lock);
  run_part(0);
  for (int spin = 0; atomic_load_explicit(&pool.left, memory_order_acquire) > 0; spin++) {
    if (spin < SPINS) pause_cpu();
    else sched_yield();
  }
  pthread_mutex_unlock(&pool.busy);
}
