# Puts text files into a folder's library as string constants:
#   talpa_embed(inspect html/report.css html/report.js)
# makes `inspect/embedded.h` with talpa::inspect::embedded("html/report.css"). The files are read when the library is built, so
# an edit shows in the next build. Run with -P it is the build step itself.
if(CMAKE_SCRIPT_MODE_FILE)
  set(body "")
  set(rows "")
  set(number 0)
  string(REPLACE "," ";" FILES "${FILES}")
  foreach(name ${FILES})
    file(READ ${FOLDER}/${name} hex HEX)
    string(LENGTH "${hex}" digits)
    math(EXPR bytes "${digits} / 2")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," hex "${hex}")
    string(APPEND body "constexpr unsigned char kFile${number}[] = {${hex}0};\n")
    string(APPEND rows "    {\"${name}\", kFile${number}, ${bytes}},\n")
    math(EXPR number "${number} + 1")
  endforeach()
  file(WRITE ${OUTPUT} "// Made by cmake/TalpaEmbed.cmake.\n#include \"${SPACE}/embedded.h\"\n\nnamespace talpa::${SPACE} {\nnamespace {\n\n"
       "${body}\nstruct File {\n    std::string_view name;\n    const unsigned char* bytes;\n    std::size_t size;\n};\nconstexpr File kFiles[] = {\n${rows}};\n\n}  // namespace\n\n"
       "std::string_view embedded(std::string_view name) {\n    for (const File& f : kFiles)\n        if (f.name == name) return {reinterpret_cast<const char*>(f.bytes), f.size};\n    return {};\n}\n\n}  // namespace talpa::${SPACE}\n")
  return()
endif()

# talpa_embed(webapp ROOT ${made} FILES …) takes files that the build makes; whoever makes them lists them as outputs.
function(talpa_embed folder)
  cmake_parse_arguments(E "" "ROOT" "FILES" ${ARGN})
  set(root ${CMAKE_SOURCE_DIR}/src/${folder})
  set(names_list ${E_UNPARSED_ARGUMENTS} ${E_FILES})
  if(E_ROOT)
    set(root ${E_ROOT})
  endif()
  talpa_target_name(target ${folder})
  string(REPLACE "/" "::" space ${folder})
  set(output ${CMAKE_BINARY_DIR}/embedded/${folder}.cpp)
  set(sources ${names_list})
  list(TRANSFORM sources PREPEND ${root}/)
  list(JOIN names_list "," names)
  add_custom_command(OUTPUT ${output}
                     COMMAND ${CMAKE_COMMAND} -D OUTPUT=${output} -D FOLDER=${root} -D SPACE=${space} -D FILES=${names} -P ${CMAKE_SOURCE_DIR}/cmake/TalpaEmbed.cmake
                     DEPENDS ${sources} ${CMAKE_SOURCE_DIR}/cmake/TalpaEmbed.cmake
                     COMMENT "Embedding files of src/${folder}" VERBATIM)
  target_sources(${target} PRIVATE ${output})
endfunction()
