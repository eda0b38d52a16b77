# What other languages generate code from: google/rpc as it is published.
encoderd_python_test(NAME proto SCRIPT proto_test.py)

# Nothing that callers of the last release rely on is gone from the contract.
encoderd_python_test(NAME contract SCRIPT contract_test.py)

# The scripts of deploy/ on their bad days; needs no build and no network. Then the checkout inside another project.
encoderd_python_test(NAME deploy_scripts SCRIPT scripts_test.py)
encoderd_python_test(NAME nightly_script SCRIPT nightly_script_test.py)
foreach(name quickstart package_scripts ccache harden round_weights)
  encoderd_python_test(NAME ${name} SCRIPT ${name}_test.py)
endforeach()
encoderd_python_test(NAME subproject SCRIPT subproject_test.py)

# What makes the image's file system; the image itself is built by tests/nightly.sh.
encoderd_python_test(NAME image_root SCRIPT container/root_test.py)

# tests/gpu.sh: its options, folders and streams; parts of it in the test's process; then over programs that hang, die or lie, with the real engine where this build has it.
encoderd_python_test(NAME gpu_script_options SCRIPT gpu_script_options_test.py)
encoderd_python_test(NAME gpu_script_parts SCRIPT gpu_script_parts_test.py)
encoderd_python_test(NAME gpu_script SCRIPT gpu_script_test.py)
# The longest tests begin first, in a first run too.
set_tests_properties(gpu_script PROPERTIES COST 200)
if(ENCODERD_BENCH)
  set_tests_properties(gpu_script PROPERTIES
    ENVIRONMENT ENCODERD_TEST_ENGINE_BENCH=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/engine_bench)
endif()
