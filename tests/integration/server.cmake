# The server over real gRPC, in the test's process, with a device whose every bit is known.
foreach(theme embed encode format on_error windows refusal inspect queue life warnings drain models metrics stream stream_life attack tls token trace)
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
encoderd_python_test(NAME metrics_page SCRIPT metrics_page_test.py ARGS --server $<TARGET_FILE:encoderd_fake_server>)

# gRPC's list of interoperability cases, by the generated Python code that client.cmake installs, and by grpcurl.
foreach(theme interop interop_status interop_limits interop_go)
  encoderd_python_test(NAME ${theme} SCRIPT ${theme}_test.py ARGS --server $<TARGET_FILE:encoderd_fake_server>
    ENVIRONMENT PYTHONPATH=${client_site}/site PYTHONDONTWRITEBYTECODE=1 FIXTURES client_python)
endforeach()

if(TARGET encoderd)
  foreach(name revision install)
    encoderd_python_test(NAME ${name} SCRIPT ${name}_test.py ARGS --build ${CMAKE_BINARY_DIR})
  endforeach()
endif()
