# The microkernels of the NPU model are compiled once per instruction set and chosen at run time. GCC 12's own intrinsics headers
# use variables before they are set (GCC bug 105593), which -Werror would not forgive.
set(microkernels ${CMAKE_SOURCE_DIR}/src/npu_model/fast/microkernels_)
set(common -O3)
if(TALPA_SANITIZE)
  set(common -O1)  # instrumented, the templates cost minutes at -O3
endif()
if(TALPA_FUZZ)
  # clang needs minutes for the instrumented intrinsics too; the generic kernels, which are the same template, keep the checks.
  set(intrinsics -fno-sanitize=all)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND common -Wno-uninitialized -Wno-maybe-uninitialized)
endif()
set_source_files_properties(${microkernels}generic.cpp PROPERTIES SKIP_PRECOMPILE_HEADERS ON COMPILE_OPTIONS "${common}")
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  set_source_files_properties(${microkernels}avx2.cpp PROPERTIES SKIP_PRECOMPILE_HEADERS ON COMPILE_OPTIONS "${common};${intrinsics};-mavx2")
  foreach(part avx512 avx512_conv avx512_conv16)
    set_source_files_properties(${microkernels}${part}.cpp PROPERTIES SKIP_PRECOMPILE_HEADERS ON COMPILE_OPTIONS
      "${common};${intrinsics};-mavx512f;-mavx512bw;-mavx512vl;-mavx512dq;-mavx512vbmi;-mavx512vnni")
  endforeach()
endif()
