# The tokenizer against Hugging Face `tokenizers` (pinned in tests/requirements.txt), on the text of two Debian packages.
add_executable(tokenize_lines tokenize_lines.cc)
target_link_libraries(tokenize_lines PRIVATE encoderd_options encoderd_tokenizer)

foreach(pair differential:tokenizer_test byte_pair:tokenizer_byte_pair_test unigram:tokenizer_unigram_test)
  string(REPLACE ":" ";" pair ${pair})
  list(GET pair 0 name)
  list(GET pair 1 file)
  add_test(NAME tokenizer_${name}
           COMMAND ${PROJECT_SOURCE_DIR}/tests/support/python.sh -m pytest -q -p no:cacheprovider
                   ${CMAKE_CURRENT_LIST_DIR}/${file}.py)
  set_tests_properties(tokenizer_${name} PROPERTIES LABELS integration TIMEOUT 1800 COST 100 ENVIRONMENT
    "PYTHONDONTWRITEBYTECODE=1;ENCODERD_TEST_PROGRAMS=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
endforeach()
