# The tokenizer against Hugging Face `tokenizers` (pinned in tests/requirements.txt), on the text of two Debian packages.
add_executable(tokenize_lines tokenize_lines.cc)
target_link_libraries(tokenize_lines PRIVATE encoderd_options encoderd_tokenizer)

foreach(pair differential:tokenizer_test byte_pair:tokenizer_byte_pair_test unigram:tokenizer_unigram_test)
  string(REPLACE ":" ";" pair ${pair})
  list(GET pair 0 name)
  list(GET pair 1 file)
  encoderd_python_test(NAME tokenizer_${name} SCRIPT ${file}.py PYTEST TIMEOUT 1800
    ENVIRONMENT PYTHONDONTWRITEBYTECODE=1 ENCODERD_TEST_PROGRAMS=${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
  set_tests_properties(tokenizer_${name} PROPERTIES COST 100)
endforeach()
