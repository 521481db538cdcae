# The freestanding folders compiled for the M33: no exceptions, no RTTI, no static constructors, no heap, no C library.
set(CMAKE_CXX_FLAGS_RELEASE "-Os")
target_compile_options(talpa_options INTERFACE
  -mcpu=cortex-m33 -mthumb -mfloat-abi=hard -mfpu=fpv5-sp-d16
  -ffreestanding -fno-exceptions -fno-rtti -fno-threadsafe-statics -fno-unwind-tables -fno-asynchronous-unwind-tables
  -ffunction-sections -fdata-sections -fno-math-errno -ffp-contract=off)

talpa_library(base/core)
talpa_library(npu DEPS base/core)
talpa_library(pte DEPS base/core)
talpa_library(link DEPS base/core)
talpa_library(runtime DEPS pte npu)

# The firmware. Its chip-independent part (firmware/*.cpp) is tested on the host; firmware/chip/ is for this core only.
talpa_library(firmware DEPS runtime link npu)
target_compile_options(talpa_firmware PRIVATE -fno-tree-loop-distribute-patterns)  # memcpy must not become a call of itself
