# The tokenizer against Hugging Face `tokenizers` (pinned in tests/requirements.txt), on the text of two Debian packages.
add_executable(tokenize_lines tokenize_lines.cc)
target_link_libraries(tokenize_lines PRIVATE encoderd_options encoderd_tokenizer)

add_test(NAME tokenizer_differential
         COMMAND ${PROJECT_SOURCE_DIR}/tests/support/python.sh -m pytest -q -p no:cacheprovider
                 ${CMAKE_CURRENT_LIST_DIR}/tokenizer_test.py)
set_tests_properties(tokenizer_differential PROPERTIES LABELS integration TIMEOUT 900 ENVIRONMENT
  "PYTHONDONTWRITEBYTECODE=1;ENCODERD_TEST_PROGRAMS=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
