/* An allocator whose blocks touch a page that traps: behind them, or in front of them. A freed block traps as a whole.

   With ``guard_before`` 0, a block ends where its pages end, so that the first byte behind it traps. It is aligned as
   far as its size is, which is enough for numbers of one kind. With 1, it begins where its pages begin. */

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE ((size_t)4096)

int guard_before = 0;
uint64_t guarded_blocks = 0;

typedef struct {
    size_t size, length;
    char *pages;
} About; /* on a page of its own: [about] [trap] [data] [trap] */

static size_t data_of(size_t size) { return ((size ? size : 1) + PAGE - 1) / PAGE * PAGE; }

static About *about_of(void *block) {
    char *first = (char *)((uintptr_t)block & ~(uintptr_t)(PAGE - 1));
    return (About *)(first - 2 * PAGE);
}

void *guarded_malloc(void *context, size_t size) {
    (void)context;
    size_t data = data_of(size), length = data + 3 * PAGE;
    char *pages = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return NULL;
    *(About *)pages = (About){size, length, pages};
    if (mprotect(pages + PAGE, PAGE, PROT_NONE) || mprotect(pages + 2 * PAGE + data, PAGE, PROT_NONE)) return NULL;
    __atomic_add_fetch(&guarded_blocks, 1, __ATOMIC_RELAXED);
    /* the address of a block lies in its first page, so that what is known of it is found: a large one ends there too */
    char *first = pages + 2 * PAGE;
    return guard_before ? first : first + data - (size ? size : 1);
}

void guarded_free(void *context, void *block, size_t size) {
    (void)context;
    (void)size;
    if (block) munmap(about_of(block)->pages, about_of(block)->length);
}

void *guarded_calloc(void *context, size_t count, size_t size) {
    return guarded_malloc(context, count * size); /* new pages are zero */
}

void *guarded_realloc(void *context, void *block, size_t size) {
    if (!block) return guarded_malloc(context, size);
    void *other = guarded_malloc(context, size);
    size_t before = about_of(block)->size;
    if (other) {
        memcpy(other, block, before < size ? before : size);
        guarded_free(context, block, before);
    }
    return other;
}
