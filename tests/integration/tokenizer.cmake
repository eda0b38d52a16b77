# The tokenizer against Hugging Face `tokenizers`.
add_executable(tokenize_lines tokenize_lines.cc)
target_link_libraries(tokenize_lines PRIVATE encoderd_options encoderd_tokenizer)
