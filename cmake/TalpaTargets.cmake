# How a folder of src/ becomes targets. In a folder, by the end of the file's name:
#   x.cpp        -> the folder's static library            x_test.cpp  -> the folder's one gtest program
#   x_bench.cpp  -> a Google Benchmark program of its own  x_fuzz.cpp  -> a fuzz target of its own
option(TALPA_SANITIZE "address and undefined-behaviour sanitizers" OFF)
option(TALPA_FUZZ "build *_fuzz.cpp with libFuzzer" OFF)
option(TALPA_ARM64 "build only what runs on the board's Linux" OFF)
option(TALPA_FIRMWARE "build the freestanding parts for the Cortex-M33" OFF)

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_CXX_FLAGS_RELEASE "-O1")  # and no NDEBUG: the assertions of libraries and of code for tests stay on
# Folders whose own time is waited for get -O2. The rest reads, checks and talks; -O1 compiles it in two thirds of the time.
set(TALPA_HOT_FOLDERS base/core base/host npu pte link image runtime npu_model classifier compiler/graph compiler/passes
                      compiler/floats compiler/quantize compiler/weights compiler/lower compiler/schedule compiler/emit
                      board/cpu board/devices board/machine board/linux)
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1")

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

add_library(talpa_options INTERFACE)
target_include_directories(talpa_options INTERFACE ${CMAKE_SOURCE_DIR}/src)
target_compile_options(talpa_options INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wold-style-cast
                       -Wimplicit-fallthrough -Wunused -Woverloaded-virtual -Werror)
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # GCC 12 reports false positives in its own std::expected and std::string at -O2 (GCC bugs 105593, 105651).
  target_compile_options(talpa_options INTERFACE -Wno-maybe-uninitialized -Wno-restrict -Wno-stringop-overflow
                         -Wno-array-bounds -Wno-free-nonheap-object)
else()
  # std::stable_sort of GCC 12's library uses what C++17 deprecated, and clang says so to whoever calls it.
  target_compile_options(talpa_options INTERFACE -Wno-deprecated-declarations)
endif()
if(TALPA_SANITIZE)
  target_compile_options(talpa_options INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=all
                         -fno-omit-frame-pointer)
  target_link_options(talpa_options INTERFACE -fsanitize=address,undefined)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    # A fifth of the time that code takes to compile, and mostly what the address sanitizer catches at the access. What it does
    # not (a reference to null that nobody reads, a live object under a wrong type) is left to GCC's preset, asan, which checks
    # all: `./run soak sanitizers`. And a linker in a quarter of the time.
    target_compile_options(talpa_options INTERFACE -fno-sanitize=null,object-size,vptr)
    target_link_options(talpa_options INTERFACE -fuse-ld=lld)
  endif()
endif()

if(TALPA_FUZZ)
  target_compile_options(talpa_options INTERFACE -fsanitize=fuzzer-no-link)  # coverage of the libraries guides the fuzzers
endif()

# Without ccache, which does better and across trees, the headers that nearly every source takes are compiled once: the standard
# library's for all, Google Test's too for tests. Sources with compile options of their own cannot take them.
if(CCACHE OR TALPA_FIRMWARE)
  set(pch OFF)
else()
  set(pch ON)
endif()
option(TALPA_PCH "precompiled headers" ${pch})
# And GCC compiles the sources of folders that are not hot, and of some that are, several at a time: what they spend is the
# parsing of JSON and command-line headers and the same templates made again in each. The clang build (preset fuzz) takes
# every source by itself, so that an include that is missing shows.
if(TALPA_PCH AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(unity 6)
else()
  set(unity 0)
endif()
set(TALPA_UNITY ${unity} CACHE STRING "sources of a folder compiled at a time; 0: each by itself")
# Names of an enumeration stand in the open there, among them those of types: Target, File.
set_source_files_properties(${CMAKE_SOURCE_DIR}/src/topo/cli/command_table.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
# Boost.Beast takes as long as the sources beside it together; whoever edits one of those need not wait for it.
set_source_files_properties(${CMAKE_SOURCE_DIR}/src/webapp/http/server.cpp
  ${CMAKE_SOURCE_DIR}/src/webapp/http/session.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)

function(talpa_hot target)
  if(NOT TALPA_FIRMWARE)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O2>)
  endif()
endfunction()

# Tests under the sanitizers: what they compile to is run once, so no time goes into making it fast. What is tested keeps its level.
function(talpa_test_level target)
  if(TALPA_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    target_compile_options(${target} PRIVATE -O0)
  endif()
endfunction()

function(talpa_make_precompiled)
  # What libfuse demands of its users and what the one library of fmt is made with: the same for all who take the headers.
  target_compile_definitions(talpa_options INTERFACE _FILE_OFFSET_BITS=64 FMT_SHARED)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    # With them GCC 12 reads past the short strings of std::string too.
    target_compile_options(talpa_options INTERFACE -Wno-stringop-overread)
  endif()
  set(standard <algorithm> <array> <bit> <charconv> <chrono> <cmath> <cstdint> <cstring> <deque> <expected> <filesystem>
               <functional> <map> <memory> <mutex> <optional> <set> <span> <string> <string_view> <utility> <vector>)
  add_library(talpa_precompiled OBJECT ${CMAKE_SOURCE_DIR}/cmake/header_only.cpp)
  target_link_libraries(talpa_precompiled PRIVATE talpa_options talpa_fmt)
  target_precompile_headers(talpa_precompiled PRIVATE ${standard} <fmt/format.h>)
  add_library(talpa_precompiled_hot OBJECT ${CMAKE_SOURCE_DIR}/cmake/header_only.cpp)
  talpa_hot(talpa_precompiled_hot)
  target_link_libraries(talpa_precompiled_hot PRIVATE talpa_options talpa_fmt)
  target_precompile_headers(talpa_precompiled_hot PRIVATE ${standard} <fmt/format.h>)
  add_library(talpa_precompiled_test OBJECT ${CMAKE_SOURCE_DIR}/cmake/header_only.cpp)
  talpa_test_level(talpa_precompiled_test)
  target_link_libraries(talpa_precompiled_test PRIVATE talpa_options talpa_fmt GTest::gmock)
  target_precompile_headers(talpa_precompiled_test PRIVATE ${standard} <fmt/format.h> <gmock/gmock.h> <gtest/gtest.h>)
endfunction()

# talpa_precompile(TARGET KIND): KIND is talpa_precompiled, its _hot or its _test.
function(talpa_precompile target kind)
  if(TALPA_PCH)
    target_precompile_headers(${target} REUSE_FROM ${kind})
  endif()
endfunction()

function(talpa_unite target)
  if(TALPA_UNITY)
    set(batch ${TALPA_UNITY})
    if(target STREQUAL talpa_cli AND batch GREATER 3)
      set(batch 3)  # CLI11 in every one: six would take longer to compile again than one wants to wait after an edit
    endif()
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${batch})
    # To GCC all but the united source are headers, in which types hold nothing of an unnamed namespace.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()

function(talpa_target_name out folder)
  string(REPLACE "/" "_" name ${folder})
  set(${out} talpa_${name} PARENT_SCOPE)
endfunction()

function(talpa_link target)
  cmake_parse_arguments(A "" "" "DEPS;LIBS" ${ARGN})
  foreach(dep ${A_DEPS})
    talpa_target_name(dep_target ${dep})
    target_link_libraries(${target} PUBLIC ${dep_target})
  endforeach()
  target_link_libraries(${target} PUBLIC talpa_options ${A_LIBS})
endfunction()

# The folder's sources of one kind, subfolders included.
function(talpa_sources out folder suffix)
  file(GLOB_RECURSE found CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${folder}/*${suffix}.cpp)
  set(${out} ${found} PARENT_SCOPE)
endfunction()

# talpa_library(FOLDER [WITHOUT REGEX] [DEPS folders…] [LIBS targets…])
function(talpa_library folder)
  cmake_parse_arguments(L "" "WITHOUT" "" ${ARGN})
  talpa_target_name(target ${folder})
  talpa_sources(sources ${folder} "")
  list(FILTER sources EXCLUDE REGEX "(_test|_bench|_fuzz|/main)\\.cpp$")
  if(L_WITHOUT)
    list(FILTER sources EXCLUDE REGEX "${L_WITHOUT}")
  endif()
  if(TALPA_FIRMWARE)
    list(FILTER sources EXCLUDE REGEX "/host/")  # what a freestanding folder offers to hosts only
  else()
    list(FILTER sources EXCLUDE REGEX "/firmware/chip/")  # registers of the Cortex-M33
  endif()
  if(sources)
    add_library(${target} STATIC ${sources})
    talpa_link(${target} ${L_UNPARSED_ARGUMENTS})
    if(folder IN_LIST TALPA_HOT_FOLDERS)
      talpa_hot(${target})
      talpa_precompile(${target} talpa_precompiled_hot)
      if(folder MATCHES "^(pte|link|npu|board/cpu)$")  # many small sources, no one of which is edited often
        talpa_unite(${target})
      endif()
    else()
      talpa_precompile(${target} talpa_precompiled)
      talpa_unite(${target})
    endif()
  else()
    add_library(${target} STATIC ${CMAKE_SOURCE_DIR}/cmake/header_only.cpp)
    talpa_link(${target} ${L_UNPARSED_ARGUMENTS})
  endif()
  talpa_checks(${folder} ${target})
endfunction()

# What users run, without tests and benchmarks.
add_custom_target(programs)
# All *_fuzz.cpp and what they link.
add_custom_target(fuzzers)

# A command-line program: src/FOLDER/main.cpp plus the folder's library.
function(talpa_program name)
  cmake_parse_arguments(P "" "FOLDER" "" ${ARGN})
  talpa_library(${P_FOLDER} ${P_UNPARSED_ARGUMENTS})
  talpa_target_name(target ${P_FOLDER})
  add_executable(${name} ${CMAKE_SOURCE_DIR}/src/${P_FOLDER}/main.cpp)
  target_link_libraries(${name} PRIVATE ${target})
  add_dependencies(programs ${name})
endfunction()

# Without shared libraries: a process of it takes a fraction of the memory, and it runs wherever it is copied.
function(talpa_static name)
  if(NOT TALPA_SANITIZE)
    target_link_options(${name} PRIVATE -static -Wl,--gc-sections)
  endif()
endfunction()

# The layout of a program whose many processes mostly wait; see the linker script.
function(talpa_resident name)
  if(NOT TALPA_SANITIZE AND NOT TALPA_FUZZ)
    set(script ${CMAKE_SOURCE_DIR}/cmake/remoteproc_resident.ld)
    target_link_options(${name} PRIVATE -Wl,-T,${script})
    set_property(TARGET ${name} APPEND PROPERTY LINK_DEPENDS ${script})
  endif()
endfunction()

function(talpa_checks folder target)
  if(TALPA_FIRMWARE)
    return()
  endif()
  talpa_sources(tests ${folder} "_test")
  if(tests)
    add_executable(${target}_test ${tests})
    talpa_test_level(${target}_test)
    target_link_libraries(${target}_test PRIVATE ${target} talpa_base_host GTest::gmock GTest::gtest_main)
    target_compile_definitions(${target}_test PRIVATE TALPA_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
    talpa_precompile(${target}_test talpa_precompiled_test)
    include(GoogleTest)
    gtest_discover_tests(${target}_test NO_PRETTY_VALUES TEST_PREFIX "${folder}/" DISCOVERY_TIMEOUT 120 PROPERTIES TIMEOUT 900)
  endif()
  talpa_sources(benches ${folder} "_bench")
  foreach(bench ${benches})
    get_filename_component(name ${bench} NAME_WE)
    if(NOT TALPA_SANITIZE AND NOT TALPA_ARM64)
      add_executable(${name} EXCLUDE_FROM_ALL ${bench})
      target_link_libraries(${name} PRIVATE ${target} benchmark::benchmark)
    endif()
  endforeach()
  # As a test each replays its corpus (tests/corpus/NAME/).
  talpa_sources(fuzzers ${folder} "_fuzz")
  foreach(fuzzer ${fuzzers})
    get_filename_component(name ${fuzzer} NAME_WE)
    if(TALPA_FUZZ)
      add_executable(${name} ${fuzzer})
      target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
      target_link_options(${name} PRIVATE -fsanitize=fuzzer)
      add_test(NAME ${folder}/${name}.replay COMMAND ${name} -runs=0 ${CMAKE_SOURCE_DIR}/tests/corpus/${name})
    else()
      add_executable(${name} ${fuzzer} ${CMAKE_SOURCE_DIR}/cmake/fuzz_replay.cpp)
      add_test(NAME ${folder}/${name}.replay COMMAND ${name} ${CMAKE_SOURCE_DIR}/tests/corpus/${name})
    endif()
    target_link_libraries(${name} PRIVATE ${target} talpa_base_host)
    add_dependencies(fuzzers ${name})
  endforeach()
endfunction()
