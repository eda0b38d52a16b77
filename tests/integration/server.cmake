# The server over real gRPC, in the test's process, with a device whose every bit is known.
foreach(theme embed encode format on_error windows refusal inspect queue life drain models metrics stream stream_life attack tls token trace)
  encoderd_test(NAME server_${theme}_test SOURCES ${theme}_test.cc LIBS encoderd_test_server encoderd_test_support GRPC)
endforeach()

# The server as its own process.
encoderd_test(NAME server_process_test SOURCES process_test.cc process_flags_test.cc process_log_test.cc process_notify_test.cc
  LIBS encoderd_test_server encoderd_process GRPC)
target_compile_definitions(server_process_test PRIVATE ENCODERD_FAKE_SERVER="$<TARGET_FILE:encoderd_fake_server>")
add_dependencies(server_process_test encoderd_fake_server)

if(TARGET encoderd_model)
  # What the system refuses, one failure at a time: tests/support/faults.h.
  encoderd_test(NAME server_fault_test
    SOURCES fault_test.cc fault_file_test.cc fault_memory_test.cc fault_thread_test.cc
    LIBS encoderd_faults encoderd_test_server encoderd_test_support encoderd_model encoderd_io GRPC)

  # The server with the model of ENCODERD_TEST_MODEL.
  encoderd_test(NAME server_model_test SOURCES model_test.cc LIBS encoderd_test_server encoderd_test_support encoderd_model
    GRPC)
endif()

# The table in server/docs/metrics.md against a scrape, and the commit that a build says of itself.
add_test(NAME metrics_page
         COMMAND ${PROJECT_SOURCE_DIR}/tests/support/python.sh ${CMAKE_CURRENT_SOURCE_DIR}/metrics_page_test.py
                 --server $<TARGET_FILE:encoderd_fake_server>)
set_tests_properties(metrics_page PROPERTIES LABELS integration TIMEOUT 120)

# gRPC's list of interoperability cases, by the generated Python code that client.cmake installs, and by grpcurl.
foreach(theme interop interop_status interop_limits interop_go)
  add_test(NAME ${theme}
           COMMAND ${PROJECT_SOURCE_DIR}/tests/support/python.sh ${CMAKE_CURRENT_SOURCE_DIR}/${theme}_test.py
                   --server $<TARGET_FILE:encoderd_fake_server>)
  set_tests_properties(${theme} PROPERTIES LABELS integration TIMEOUT 300 FIXTURES_REQUIRED client_python
    ENVIRONMENT "PYTHONPATH=${client_site}/site;PYTHONDONTWRITEBYTECODE=1")
endforeach()

if(TARGET encoderd)
  add_test(NAME revision
           COMMAND ${PROJECT_SOURCE_DIR}/tests/support/python.sh ${CMAKE_CURRENT_SOURCE_DIR}/revision_test.py
                   --build ${CMAKE_BINARY_DIR})
  set_tests_properties(revision PROPERTIES LABELS integration TIMEOUT 120)
  add_test(NAME install
           COMMAND ${PROJECT_SOURCE_DIR}/tests/support/python.sh ${CMAKE_CURRENT_SOURCE_DIR}/install_test.py
                   --build ${CMAKE_BINARY_DIR})
  set_tests_properties(install PROPERTIES LABELS integration TIMEOUT 120)
endif()
