# ENCODERD_CCACHE: the program ccache, used where one is found and works; OFF uses none. With a HOME that cannot be written,
# as builders of distributions have it, it would fail with every file.
find_program(ENCODERD_CCACHE ccache)
if(NOT ENCODERD_CCACHE)
  return()
endif()
set(try ${PROJECT_BINARY_DIR}/ccache_works)
file(WRITE ${try}.cc "int main() {}\n")
execute_process(COMMAND ${ENCODERD_CCACHE} ${CMAKE_CXX_COMPILER} -c ${try}.cc -o ${try}.o
                RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output OUTPUT_STRIP_TRAILING_WHITESPACE
                ERROR_STRIP_TRAILING_WHITESPACE)
if(NOT result EQUAL 0)
  message(STATUS "ccache: not used, since it fails: ${output}")
  set(ENCODERD_CCACHE "")
  return()
endif()
if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${ENCODERD_CCACHE})
  # So that it caches what reads precompiled headers; who has set it, has chosen.
  execute_process(COMMAND ${ENCODERD_CCACHE} --get-config sloppiness
                  OUTPUT_VARIABLE sloppiness ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT sloppiness)
    list(PREPEND CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros)
  endif()
endif()
