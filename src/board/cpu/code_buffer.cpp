#include "board/cpu/code_buffer.h"

#include <sys/mman.h>
#include <unistd.h>

namespace talpa::board::cpu {

CodeBuffer::CodeBuffer(std::size_t size) {
    const int fd = memfd_create("talpa-m33-code", MFD_CLOEXEC);
    if (fd < 0) return;
    void* write = MAP_FAILED;
    void* execute = MAP_FAILED;
    if (ftruncate(fd, static_cast<off_t>(size)) == 0) {
        write = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        execute = mmap(nullptr, size, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
    }
    close(fd);
    if (write != MAP_FAILED && execute != MAP_FAILED) {
        write_ = static_cast<u8*>(write);
        execute_ = static_cast<u8*>(execute);
        size_ = size;
        return;
    }
    if (write != MAP_FAILED) munmap(write, size);
    if (execute != MAP_FAILED) munmap(execute, size);
}

CodeBuffer::~CodeBuffer() {
    if (!usable()) return;
    munmap(write_, size_);
    munmap(execute_, size_);
}

}  // namespace talpa::board::cpu
