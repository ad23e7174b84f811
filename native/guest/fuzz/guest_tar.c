/* Fuzzes the reading of archives: headers, pax and GNU extensions, numbers. */
#include "../tar/tar.c"
#include "../tar/entry.c"

static const uint8_t *input;
static size_t left;

size_t worker_read(void *buffer, size_t length) {
  size_t n = length < left ? length : left;
  memcpy(buffer, input, n);
  input += n;
  left -= n;
  return n;
}

/* A mutated header almost never keeps its sum: it is put right, so that the fuzzer gets past it. */
static void fix_checksums(uint8_t *bytes, size_t size) {
  for (size_t at = 0; at + TAR_BLOCK <= size; at += TAR_BLOCK) {
    struct tar_header *header = (struct tar_header *)(bytes + at);
    unsigned sum = tar_checksum(header);
    if (header->checksum[7] != ' ') continue; /* content, or a header that shall be refused */
    for (int i = 5; i >= 0; i--, sum >>= 3) header->checksum[i] = (char)('0' + (sum & 7));
    header->checksum[6] = 0;
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint8_t *copy = malloc(size + 1);
  if (copy == NULL) return 0;
  memcpy(copy, data, size);
  fix_checksums(copy, size);
  input = copy;
  left = size;
  static struct tar_entry entry;
  const char *bad;
  while (tar_entry_next(&entry, &bad)) {
    if (strnlen(entry.name, PATH_MAX) == PATH_MAX || strnlen(entry.target, PATH_MAX) == PATH_MAX) abort();
    tar_entry_skip((entry.size + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK);
  }
  free(copy);
  return 0;
}
