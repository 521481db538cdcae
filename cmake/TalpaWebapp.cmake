# talpa-webapp: one static binary with its page inside. The page is built by npm (scripts/build_ui.sh), once for all presets.
set(webapp_page ${CMAKE_SOURCE_DIR}/build/webapp-page)
set(webapp_files openapi.json ui/index.html ui/assets/app.js ui/assets/app.css ui/assets/icon.svg samples/cat.jpg samples/coffee.jpg)
set(webapp_outputs ${webapp_files})
list(TRANSFORM webapp_outputs PREPEND ${webapp_page}/)
file(GLOB_RECURSE webapp_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/webapp/ui/* ${CMAKE_SOURCE_DIR}/src/webapp/samples/*)
add_custom_command(OUTPUT ${webapp_outputs}
                   COMMAND ${CMAKE_SOURCE_DIR}/scripts/build_ui.sh ${CMAKE_SOURCE_DIR}/src/webapp ${webapp_page}
                   DEPENDS ${webapp_sources} ${CMAKE_SOURCE_DIR}/src/webapp/openapi.json ${CMAKE_SOURCE_DIR}/scripts/build_ui.sh
                   COMMENT "Building the web application's page" VERBATIM)

talpa_program(talpa-webapp FOLDER webapp DEPS classifier inspect link runtime image base/host LIBS CLI11::CLI11)
talpa_embed(webapp ROOT ${webapp_page} FILES ${webapp_files})
target_compile_definitions(talpa_webapp PUBLIC TALPA_VERSION="${PROJECT_VERSION}" BOOST_ASIO_NO_DEPRECATED)
if(NOT TALPA_SANITIZE)
  # FROM scratch: no loader, no libraries. (Sanitizers cannot be linked so.)
  target_link_options(talpa-webapp PRIVATE -static-pie)
endif()
