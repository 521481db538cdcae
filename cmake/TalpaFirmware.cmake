# The freestanding folders compiled for the M33: no exceptions, no RTTI, no static constructors, no heap, no C library.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(CMAKE_CXX_FLAGS_RELEASE "-Os")
set(CMAKE_CXX_STANDARD_LIBRARIES "-lgcc")  # after every library of ours
target_compile_options(talpa_options INTERFACE
  -mcpu=cortex-m33 -mthumb -mfloat-abi=hard -mfpu=fpv5-sp-d16
  -ffreestanding -fno-exceptions -fno-rtti -fno-threadsafe-statics -fno-unwind-tables -fno-asynchronous-unwind-tables
  -ffunction-sections -fdata-sections -fno-math-errno -ffp-contract=off -Wno-psabi -flto)

talpa_library(base/core)
talpa_library(npu DEPS base/core)
talpa_library(pte DEPS base/core)
talpa_library(link DEPS base/core)
talpa_library(runtime DEPS pte npu)

# The firmware. Its chip-independent part (firmware/*.cpp) is tested on the host; firmware/chip/ is for this core only.
talpa_library(firmware DEPS runtime link npu)
target_compile_options(talpa_firmware PRIVATE -fno-tree-loop-distribute-patterns)  # memcpy must not become a call of itself
target_compile_definitions(talpa_firmware PRIVATE TALPA_VERSION="${PROJECT_VERSION}")
option(TALPA_OCRAM "firmware: NPU fast scratch in on-chip SRAM (uncertain on silicon)" OFF)
if(TALPA_OCRAM)
  target_compile_definitions(talpa_firmware PRIVATE TALPA_OCRAM)
endif()

add_executable(executorch_runner_cm33.elf ${CMAKE_SOURCE_DIR}/src/firmware/chip/main.cpp
               ${CMAKE_SOURCE_DIR}/src/firmware/chip/startup.cpp)
set_target_properties(executorch_runner_cm33.elf PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}
                      LINK_DEPENDS ${CMAKE_SOURCE_DIR}/src/firmware/chip/imx93_m33.ld)
target_compile_definitions(executorch_runner_cm33.elf PRIVATE TALPA_VERSION="${PROJECT_VERSION}")
target_link_libraries(executorch_runner_cm33.elf PRIVATE talpa_firmware)
target_link_options(executorch_runner_cm33.elf PRIVATE
  -mcpu=cortex-m33 -mthumb -mfloat-abi=hard -mfpu=fpv5-sp-d16 -ffunction-sections -fdata-sections -nostdlib -static -T ${CMAKE_SOURCE_DIR}/src/firmware/chip/imx93_m33.ld
  -Wl,--gc-sections -Wl,--orphan-handling=error -Wl,--build-id=none -Wl,-z,max-page-size=8 -Wl,-Map=${CMAKE_BINARY_DIR}/executorch_runner_cm33.map)
add_custom_command(TARGET executorch_runner_cm33.elf POST_BUILD COMMAND arm-none-eabi-size -A $<TARGET_FILE:executorch_runner_cm33.elf>)
# What the compiler calls on its own must not be optimised away before it does.
set_source_files_properties(${CMAKE_SOURCE_DIR}/src/firmware/chip/libc.cpp PROPERTIES COMPILE_OPTIONS "-fno-lto")

# Size of reader, executor, delegate and quantize/dequantize, printed here and held by tests/firmware_size_test.py.
add_executable(talpa_size_probe ${CMAKE_SOURCE_DIR}/cmake/size_probe.cpp ${CMAKE_SOURCE_DIR}/src/firmware/chip/libc.cpp)
set_target_properties(talpa_size_probe PROPERTIES SUFFIX .elf)
target_link_libraries(talpa_size_probe PRIVATE talpa_runtime)
target_compile_options(talpa_size_probe PRIVATE -fno-tree-loop-distribute-patterns)
target_link_options(talpa_size_probe PRIVATE -mcpu=cortex-m33 -mthumb -mfloat-abi=hard -mfpu=fpv5-sp-d16
  -ffunction-sections -fdata-sections -nostdlib -static
  -Wl,--gc-sections -Wl,--entry=probe_main -Wl,-Ttext=0x0FFE0000)
add_custom_command(TARGET talpa_size_probe POST_BUILD VERBATIM
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/firmware_size_test.py --print $<TARGET_FILE:talpa_size_probe>)
