# What every target of the project shares: warnings, sanitizers, the include root; and a function for tests of each language.
add_library(encoderd_options INTERFACE)
target_include_directories(encoderd_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(encoderd_options INTERFACE -Wall -Wextra -Wno-unused-parameter
  $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wthread-safety>)
if(ENCODERD_SANITIZE)
  # No -Werror: gcc 12 takes what sanitizers add to std::string for writes out of bounds. Other builds compile the same code.
  target_compile_options(encoderd_options INTERFACE -fsanitize=${ENCODERD_SANITIZE}
    -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(encoderd_options INTERFACE -fsanitize=${ENCODERD_SANITIZE})
  if(ENCODERD_SERVER AND ENCODERD_SANITIZE STREQUAL "thread")
    # Headers of protobuf give maps two more members where they see the sanitizer, which the distribution's library and
    # the generated code lack. The standard library keeps what it does for the sanitizer.
    target_compile_options(encoderd_options INTERFACE -U__SANITIZE_THREAD__ -D_GLIBCXX_TSAN=1)
  endif()
elseif(ENCODERD_WERROR)
  target_compile_options(encoderd_options INTERFACE -Werror)
endif()

# encoderd_library(name source...): a static library of sources whose headers take longer to compile than they do: with ENCODERD_UNITY
# eight are one. Not for the server's libraries: unit tests link one without those above it, which such a unit would need.
function(encoderd_library name)
  add_library(${name} STATIC ${ARGN})
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${ENCODERD_UNITY} UNITY_BUILD_BATCH_SIZE 8)
endfunction()

# How sources of tests compile: without optimization, in half the time; with UBSan also without its checks of each pointer (null,
# alignment, type), which take a quarter of the time. Libraries keep these.
set(ENCODERD_TEST_OPTIONS $<$<NOT:$<CONFIG:Release>>:-O0>)
if(ENCODERD_SANITIZE MATCHES "undefined")
  list(APPEND ENCODERD_TEST_OPTIONS -fno-sanitize=vptr,null,alignment)
endif()

# encoderd_test(NAME name SOURCES a.cc ... LIBS target ... [LABELS l ...] [GRPC] [OPTIMIZED]): a GoogleTest program and its
# ctest entry. SOURCES compile with ENCODERD_TEST_OPTIONS; OPTIMIZED: as other sources, for tests that compute much themselves.
# GRPC is for tests whose sources include gRPC and the protocol: these headers are compiled once for all of them.
# `all` leaves out those that match ENCODERD_UNBUILT_TESTS. Their ctest entries remain: exclude them, or build them by name.
function(encoderd_test)
  cmake_parse_arguments(ARG "GRPC;OPTIMIZED" "NAME" "SOURCES;LIBS;LABELS" ${ARGN})
  add_executable(${ARG_NAME} ${ARG_SOURCES})
  target_link_libraries(${ARG_NAME} PRIVATE encoderd_options ${ARG_LIBS} GTest::gmock GTest::gtest_main)
  if(ENCODERD_SERVER AND ENCODERD_SANITIZE STREQUAL "thread")
    target_sources(${ARG_NAME} PRIVATE ${PROJECT_SOURCE_DIR}/tests/support/tsan_libraries.cc)
  endif()
  if(NOT ARG_OPTIMIZED)
    target_compile_options(${ARG_NAME} PRIVATE ${ENCODERD_TEST_OPTIONS})
    set(headers encoderd_test_headers)
    if(ARG_GRPC)
      set(headers encoderd_grpc_test_headers)
    endif()
    if(TARGET ${headers})
      target_compile_options(${ARG_NAME} PRIVATE -pthread $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
      target_precompile_headers(${ARG_NAME} REUSE_FROM ${headers})
    endif()
  endif()
  if(ENCODERD_UNBUILT_TESTS AND ARG_NAME MATCHES "${ENCODERD_UNBUILT_TESTS}")
    set_target_properties(${ARG_NAME} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
  add_test(NAME ${ARG_NAME} COMMAND ${ARG_NAME})
  set(timeout 900)
  if(CMAKE_CROSSCOMPILING)
    set(timeout 3600)  # emulated
  endif()
  set_tests_properties(${ARG_NAME} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${timeout})
endfunction()

# encoderd_python_test(NAME name SCRIPT file [PYTEST] [ARGS arg ...] [LABELS l ...] [TIMEOUT seconds] [ENVIRONMENT name=value ...]
# [FIXTURES name ...]): a Python script, or with PYTEST pytest on it, run by the interpreter that has tests/requirements.txt.
# FIXTURES: the fixtures that it requires. LABELS is integration and TIMEOUT, which only ends what hangs, is 900 by default; either
# without a value: none.
function(encoderd_python_test)
  cmake_parse_arguments(ARG "PYTEST" "NAME;SCRIPT;TIMEOUT" "ARGS;LABELS;ENVIRONMENT;FIXTURES" ${ARGN})
  cmake_path(ABSOLUTE_PATH ARG_SCRIPT BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  set(pytest)
  if(ARG_PYTEST)
    set(pytest -m pytest -q -p no:cacheprovider)
  endif()
  add_test(NAME ${ARG_NAME} COMMAND ${PROJECT_SOURCE_DIR}/tests/support/python.sh ${pytest} ${ARG_SCRIPT} ${ARG_ARGS})
  set(default_LABELS integration)
  set(default_TIMEOUT 900)
  foreach(property LABELS TIMEOUT)
    if(NOT DEFINED ARG_${property} AND NOT property IN_LIST ARG_KEYWORDS_MISSING_VALUES)
      set(ARG_${property} ${default_${property}})
    endif()
  endforeach()
  set_property(TEST ${ARG_NAME} PROPERTY LABELS ${ARG_LABELS})
  set_property(TEST ${ARG_NAME} PROPERTY TIMEOUT ${ARG_TIMEOUT})
  set_property(TEST ${ARG_NAME} PROPERTY ENVIRONMENT ${ARG_ENVIRONMENT})
  set_property(TEST ${ARG_NAME} PROPERTY FIXTURES_REQUIRED ${ARG_FIXTURES})
endfunction()
