# The freestanding folders compiled for the M33: no exceptions, no RTTI, no static constructors, no heap, no C library.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(CMAKE_CXX_FLAGS_RELEASE "-Os")
set(CMAKE_CXX_STANDARD_LIBRARIES "-lgcc")  # after every library of ours
target_compile_options(talpa_options INTERFACE
  -mcpu=cortex-m33 -mthumb -mfloat-abi=hard -mfpu=fpv5-sp-d16
  -ffreestanding -fno-exceptions -fno-rtti -fno-threadsafe-statics -fno-unwind-tables -fno-asynchronous-unwind-tables
  -ffunction-sections -fdata-sections -fno-math-errno -ffp-contract=off -Wno-psabi -flto -flto-partition=one)

target_compile_definitions(talpa_options INTERFACE TALPA_COMPACT_ERRORS TALPA_NO_DATA_FILES)

talpa_library(base/core)
talpa_library(npu DEPS base/core)
talpa_library(pte DEPS base/core)
talpa_library(link DEPS base/core)
talpa_library(runtime DEPS pte npu)

# The firmware. Its chip-independent part (firmware/*.cpp) is tested on the host; firmware/chip/ is for this core only.
talpa_sources(talpa_firmware_sources firmware "")
list(FILTER talpa_firmware_sources EXCLUDE REGEX "_test\\.cpp$")
# What the compiler calls on its own must not be optimised away before it does.
set_source_files_properties(${CMAKE_SOURCE_DIR}/src/firmware/chip/libc.cpp PROPERTIES COMPILE_OPTIONS "-fno-lto")

# talpa_firmware_image(NAME [DEFINITION...])
function(talpa_firmware_image name)
  add_executable(${name} ${talpa_firmware_sources})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}
                        LINK_DEPENDS ${CMAKE_SOURCE_DIR}/src/firmware/chip/imx93_m33.ld)
  target_compile_options(${name} PRIVATE -fno-tree-loop-distribute-patterns)  # memcpy must not become a call of itself
  target_compile_definitions(${name} PRIVATE TALPA_VERSION="${PROJECT_VERSION}" ${ARGN})
  target_link_libraries(${name} PRIVATE talpa_runtime talpa_link talpa_npu)
  target_link_options(${name} PRIVATE
    -mcpu=cortex-m33 -mthumb -mfloat-abi=hard -mfpu=fpv5-sp-d16 -ffunction-sections -fdata-sections -flto-partition=one -nostdlib -static
    -T ${CMAKE_SOURCE_DIR}/src/firmware/chip/imx93_m33.ld -Wl,--gc-sections -Wl,--orphan-handling=error -Wl,--build-id=none
    -Wl,-z,max-page-size=8 -Wl,-Map=${CMAKE_BINARY_DIR}/${name}.map)
endfunction()

option(TALPA_OCRAM "firmware: NPU fast scratch in on-chip SRAM where it fits (uncertain on silicon)" OFF)
option(TALPA_VENDOR_TTY "firmware: one channel that makes the vendor's tty driver name its node /dev/ttyRPMSG0" OFF)
set(talpa_firmware_options)
foreach(name TALPA_OCRAM TALPA_VENDOR_TTY)
  if(${name})
    list(APPEND talpa_firmware_options ${name})
  endif()
endforeach()
talpa_firmware_image(executorch_runner_cm33.elf ${talpa_firmware_options})
add_custom_command(TARGET executorch_runner_cm33.elf POST_BUILD VERBATIM
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/firmware_size_test.py --print $<TARGET_FILE:executorch_runner_cm33.elf>)
# Both build options on, for the tests of the virtual board.
talpa_firmware_image(firmware_with_options.elf TALPA_OCRAM TALPA_VENDOR_TTY)

# Size of reader, executor, delegate and quantize/dequantize alone, printed here and held by tests/firmware_size_test.py.
add_executable(talpa_size_probe ${CMAKE_SOURCE_DIR}/cmake/size_probe.cpp ${CMAKE_SOURCE_DIR}/src/firmware/chip/libc.cpp
               ${CMAKE_SOURCE_DIR}/src/firmware/chip/out_of_range.cpp)
set_target_properties(talpa_size_probe PROPERTIES SUFFIX .elf)
target_link_libraries(talpa_size_probe PRIVATE talpa_runtime)
target_compile_options(talpa_size_probe PRIVATE -fno-tree-loop-distribute-patterns)
target_link_options(talpa_size_probe PRIVATE -mcpu=cortex-m33 -mthumb -mfloat-abi=hard -mfpu=fpv5-sp-d16
  -ffunction-sections -fdata-sections -nostdlib -static
  -Wl,--gc-sections -Wl,--entry=probe_main -Wl,-Ttext=0x0FFE0000)
add_custom_command(TARGET talpa_size_probe POST_BUILD VERBATIM
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/firmware_size_test.py --print $<TARGET_FILE:talpa_size_probe>)
